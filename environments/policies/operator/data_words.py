"""Words of an order about training data that change nothing; whatever else stands in it is not understood."""

from __future__ import annotations

import re

_ENGLISH = """
    a about all also an and are as at be been by can come could course do does finally for from get
    give go has have hello hey hi i i'd in into is it its just kindly let let's like made make me my need next
    now of off ok okay on our out please pls set should so than thank thanks that the their them then
    there these they this those to too today up us use using want we will with would yes you your d s
    abort away cancel collect compact compress compressed continue create end export exporting fetch follow
    generate generating halt immediately interrupt kill making merge monitor once produce resume right
    shorten start started stop synthesise synthesize terminate wait watch write
    after afterwards back still based on everything begin launch synthetic pause
    answer answers batch conversation conversations data dataset datasets example examples file files
    fine-tuning finetuning fit form format generation input job line lines new item items prompt prompts
    question questions row rows result results sample samples sft supervised tokens trainer training
    trajectories trajectory
    atif face hf hugging huggingface parquet sharegpt trl
"""
_NAMES = "answers conversations dataset examples input items lines prompts questions results"
_CHINESE = """
    请 麻烦 帮我 帮忙 给我 替我 我们 我想 我要 我 想要 想 需要 要 希望 你 能不能 能 可以 可不可以 吗 呢
    吧 好吗 好的 好 用 使用 拿 基于 以 从 由 来自 来 根据 按 对 把 将 为 成 到 至 的 了 在 里 中 这 那 它
    它们 这些 那些 其 该 并且 并 和 与 再 然后 接着 最后 之后 以后 后 先 就 也 同时 现在 马上 立即 立刻
    一下 一个 一份 全部 所有 生成 制作 采样 产生 造 做 合成 收集 压缩 缩短 导出 输出 合并 停止
    停掉 停下 停 终止 中止 取消 继续 恢复 接着做 重新 再次 让 使 开始 启动
    进行 任务 工作 输入是 输入 是 批次 这批 那批 该批 批处理 批 样本 轨迹 训练数据 训练样本
    微调数据 微调样本 对话数据 监督微调 数据 对话 训练 微调 提示词 提示 问题 题目 文件 数据集 数据行 格式
    格式的 形式 结果 行 条 个 份 新 适合 供 给 转成 存成 用于 用来
"""
NAMES = frozenset(_NAMES.split())
"""Words of these that files are called by, and so are their batches."""
ENGLISH = frozenset(_ENGLISH.split())
CHINESE = re.compile("|".join(sorted(_CHINESE.split(), key=len, reverse=True)))
_TOKEN = re.compile(r"[^\s,;\"()、。]+")


def is_common(word: str) -> bool:
    """Whether an English word changes nothing where it stands."""
    return word.lower() in ENGLISH


def names_batch(word: str) -> bool:
    """Whether a word behind "batch" is its name rather than how the sentence goes on."""
    return not is_common(word) or word.lower() in NAMES


def unread(rest: str) -> str | None:
    """The first of what is left of an order that is not known to change nothing; None where there is none."""
    for token in _TOKEN.findall(CHINESE.sub(" ", rest)):
        word = token.strip(".:!?'-")
        if word and not is_common(word):
            return word
    return None
