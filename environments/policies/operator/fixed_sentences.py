"""Chinese for the sentences that runs and their results say in English, as far as their wording is fixed."""

from __future__ import annotations

import re

from environments.policies.operator.wording import Voice

SENTENCES = [
    (re.compile(pattern), chinese)
    for pattern, chinese in [
        (r"^all (\d+) steps(?: are)? done$", r"\1 步全部完成"),
        (
            r"^target reached: validation accuracy ([\d.]+) >= ([\d.]+) at step (\d+)$",
            r"达到目标：第 \3 步验证准确率 \1 >= \2",
        ),
        (
            r"the profile ([\w.-]+) needs an NVIDIA GPU, and none was found on this machine",
            r"配置档 \1 需要 NVIDIA GPU，本机没有",
        ),
        (r"^(\S+) cannot be trained on this machine: ", r"\1 无法在本机训练："),
        (
            r"on a machine with an NVIDIA GPU and the train extra installed: ",
            "在有 NVIDIA GPU 并装有 train 依赖的机器上运行 ",
        ),
        (r"^played to its end, (\d+) steps?$", r"已放完，共 \1 步"),
        (r"^(?:there is no W&B key|no W&B key was found)$", "没有找到 W&B 密钥"),
        (r"^set WANDB_API_KEY, or run `wandb login`$", "请设置 WANDB_API_KEY，或运行 `wandb login`"),
        (r"^W&B did not answer within ([\d.]+) s \((.*)\)$", r"W&B 在 \1 秒内没有回答（\2）"),
        (
            r"^check the network and WANDB_BASE_URL; local runs and their files do not depend on it$",
            "请检查网络和 WANDB_BASE_URL；本地运行和文件不受影响",
        ),
        (
            r"^(\S+) is a replay that was played to its end: there is no more to play$",
            r"\1 是已放完的回放，没有可继续的",
        ),
        (r"^(\S+) is finished: all (\d+) steps are done$", r"\1 已完成全部 \2 步"),
        (r"^--set grpo\.steps=NUMBER, above (\d+)$", r"可以说：恢复训练，总步数大于 \1"),
        (r"^the deadline has passed$", "已过截止时间"),
        (r"^the person said no$", "你没有同意"),
        (r"^the person said no: (.*)$", r"你没有同意（\1）"),
        (r"^forbidden by the rule (.*) in (.*)$", r"\2 中的规则 \1 禁止这样做"),
        (
            r"^it may (?:.*); there is no terminal to ask at, and no --yes$",
            "没有可以询问的终端，也没有 --yes",
        ),
        (
            r"The warm start was deliberately imperfect: it learned from worked solutions of which a part "
            r"stops too early, so that there is something left for GRPO to learn\.",
            "热启动是有意做得不完美的：它所学的示范解答有一部分提前中断，给 GRPO 留下可学的东西。",
        ),
        (r" ?What GRPO added to it: ([-+]\d+\.\d+) test accuracy\.", r"GRPO 在此之上的增益：测试准确率 \1。"),
        (r" ?GRPO made it worse: (-\d+\.\d+) test accuracy\.", r"GRPO 使它变差：测试准确率 \1。"),
        (
            r"^The reward fell from ([\d.-]+) at the start to ([\d.-]+) at the checkpoint of step (\d+): "
            r"what was learned is lost there\.$",
            r"奖励从开始时的 \1 降到第 \3 步检查点的 \2：学到的东西在那里已经丢失。",
        ),
        (r"There was no warm start \(sft\.steps is 0\)\.", "没有热启动（sft.steps 为 0）。"),
        (
            r"^This run was played from a file: nothing was trained, and no figure here was measured\.$",
            "这个运行是从文件回放的：没有训练，这里的数字都不是测得的。",
        ),
        (
            r"^(\d+) rollouts failed for reasons of infrastructure; they carried no weight\.$",
            r"\1 个 rollout 因基础设施原因失败；它们不计入训练。",
        ),
        (r"^its trainer still runs, and is watched over again$", "训练进程仍在，已重新接管"),
        (r"^goes on from step (\d+) \(attempt (\d+)\)$", r"从第 \1 步继续（第 \2 次）"),
        (
            r"^begins at the beginning: there is no good checkpoint \(attempt (\d+)\)$",
            r"从头开始：没有可用的检查点（第 \1 次）",
        ),
        (
            r"^W&B is offline\. To upload it, with a key \(WANDB_API_KEY\): (rl-cli runs sync .*)$",
            r"W&B 处于离线状态。有密钥（WANDB_API_KEY）后上传：\1",
        ),
    ]
]


def translated(sentence: str, say: Voice) -> str:
    """In the language of the request where it is one of the fixed sentences, else as it is."""
    if not say.chinese:
        return sentence
    for pattern, chinese in SENTENCES:
        sentence = pattern.sub(chinese, sentence)
    return sentence
