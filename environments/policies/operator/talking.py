"""Answers that need no tool: help, what a question gets, and why nothing was done."""

from __future__ import annotations

from environments.policies.operator.commands import command_for
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import Blocked, Hold, Intent, Unknown
from environments.policies.operator.steps import Declined, Procedure
from environments.policies.operator.wording import LIMIT, Voice, normalise, shorten
from prompts.loader import render
from tools.dispatcher import tool_specs


def help_text(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return render(f"operator_help{say.prompt_suffix}")
    yield


def list_tools(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    specs = tool_specs(("rl", "wandb", "data"))
    lines = [f"- {name}: {spec.description.splitlines()[0]}" for name, spec in specs.items()]
    more = say("More on one: rl-cli tools show NAME", "某个工具的详情：rl-cli tools show 工具名")
    return "\n".join([say("The tools I call:", "我调用的工具："), *lines, more])
    yield


def how_to_train(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return render(f"operator_training{say.prompt_suffix}")
    yield


def may_train(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    return say(
        "A question starts nothing. To start, say it as an order, for example: train gsm8k-mini for 40 steps",
        "提问不会启动任何训练。要开始，请直接下指令，例如：训练 gsm8k-mini 40 步",
    )
    yield


def hold(intent: Hold, say: Voice, conversation: Conversation) -> Procedure:
    if intent.what == "stop":
        return say("I stop nothing.", "好的，不停止任何运行。")
    if intent.what == "later":
        return say(
            "Nothing was started or stopped: I act at once or not at all. Ask again when it is time.",
            "没有启动或停止任何运行：我只能立即执行，不能定时。到时候请再说一次。",
        )
    return say("I start nothing.", "好的，不启动任何训练。")
    yield


def blocked(intent: Blocked, say: Voice, conversation: Conversation) -> Procedure:
    lines = []
    for problem in intent.problems:
        said = shorten(problem.text)
        lines.append(
            {
                "several": say("One environment at a time.", "一次只能训练一个环境。"),
                "conflict": say(f"Two values for one setting: {said}.", f"同一设置有两个值：{said}。"),
                "unclear": say(f'I cannot read this setting: "{said}".', f"无法理解这个设置：“{said}”。"),
                "unread": say(f'I do not understand "{said}" there.', f"无法理解其中的“{said}”。"),
                "model": say(
                    f'"{said}" is no full model name: write it as Hugging Face does: Qwen/Qwen3-0.6B.',
                    f"“{said}”不是完整的模型名：请按 Hugging Face 的写法，例如 Qwen/Qwen3-0.6B。",
                ),
                "forbidden": say(f'I cannot do that: "{said}".', f"这件事我做不了：“{said}”。"),
                "restriction": say(
                    f'I do not understand what is excluded by "{said}".', f"无法理解“{said}”所排除的内容。"
                ),
                "condition": say(
                    f'I cannot act on the condition in "{said}".', f"无法按“{said}”中的条件执行。"
                ),
            }[problem.kind]
        )
    about_training = say(
        "So I did nothing. Say it again without that, or set fields by name, for example grpo.steps=40.",
        "因此什么都没有做。请去掉这部分再说一次，或直接写字段名，例如 grpo.steps=40。",
    )
    about_data = say(
        "So I did nothing. Say it again without that; what I do not know may be a command's: "
        "rl-cli data --help.",
        "因此什么都没有做。请去掉这部分再说一次；我不会的操作见 rl-cli data --help。",
    )
    lines.append(about_data if intent.about_data else about_training)
    return Declined("\n".join(lines))
    yield


def unknown(intent: Unknown, say: Voice, conversation: Conversation) -> Procedure:
    if intent.too_long:
        return Declined(
            say(
                f"The request is longer than {LIMIT} characters, so I did nothing: say it in a few words.",
                f"请求超过 {LIMIT} 个字符，因此什么都没有做：请用一两句话说明。",
            )
        )
    return cannot(intent.subject, say)
    yield


def cannot(request: str, say: Voice) -> str:
    """Says so, and names the command that does it where there is one."""
    told = render(f"operator_cannot{say.prompt_suffix}", request=shorten(normalise(request)))
    if command := command_for(request):
        told = say(f"There is a command for that: {command}\n", f"这有对应的命令：{command}\n") + told
    return Declined(told)
