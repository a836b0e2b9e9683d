"""The training procedure: prepare, test inference, start, watch, report."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import ENDED, changed_line, config_line, run_lines, settings_line
from environments.policies.operator.chinese_phrases import NEGATION as CHINESE_NEGATION
from environments.policies.operator.choosing import NotChosen
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.english_phrases import NEGATION
from environments.policies.operator.failures import failure_text, said_no
from environments.policies.operator.intents import TestInference, Train
from environments.policies.operator.preparing import keep_tasks_per_step, prepare
from environments.policies.operator.settings import Settings, read_settings, unread
from environments.policies.operator.steps import Call, Declined, Procedure, Result, ToolFailed, must
from environments.policies.operator.testing import check_inference
from environments.policies.operator.watching import watch
from environments.policies.operator.wording import Voice, normalise

MOST_CORRECTIONS = 5
"""Times that other settings can be named at the question before a start."""


class NotStarted(Exception):
    """Everything was ready and training was not begun; the message says why."""


def train(intent: Train, say: Voice, conversation: Conversation) -> Procedure:
    try:
        started, notes = yield from _start(intent, say, conversation)
    except NotStarted as reason:
        return Declined(str(reason))
    except (NotChosen, ToolFailed) as error:
        why = failure_text(error.result, say) if isinstance(error, ToolFailed) else str(error)
        return Declined(say(f"{why}\nNothing was started.", f"{why}\n没有启动任何训练。"))
    return (yield from watch(started, say, notes))


def only_test(intent: TestInference, say: Voice, conversation: Conversation) -> Procedure:
    """The inference test without training."""
    plan = say(
        "I test inference without training. First: which environments are there?",
        "只测试推理，不训练。先看有哪些环境。",
    )
    try:
        draft = yield from prepare(Train(intent.subject), say, conversation, plan)
    except NotChosen as error:
        return str(error)
    tested = yield from check_inference(
        draft.config, say, say("Testing the starting checkpoint.", "测试起始检查点。")
    )
    lines = [say(f"Inference test: {tested.figures}.", f"推理测试：{tested.figures}。")]
    lines += [say(f"{tested.problem}.", f"{tested.problem}。")] if tested.problem else []
    return "\n".join([*lines, *draft.notes, say(f"Samples: {tested.file}", f"样本：{tested.file}")])


def _start(
    intent: Train, say: Voice, conversation: Conversation
) -> Generator[Call, Result, tuple[Result, list[str]]]:
    """Everything up to a started run: the result of rl_start_training, and what the report must repeat."""
    if conversation.start_is_unknown() and not intent.anyway:
        yield from _look_for_a_start_that_was_cut_off(say)
    draft = yield from prepare(intent, say, conversation, _plan(intent, say))
    config = config_line(draft.config, say)
    begun = say(f"Config: {config}. Before training I test inference.", f"配置：{config}。训练前先测试推理。")
    tested = yield from check_inference(draft.config, say, begun)
    if tested.problem and not intent.anyway:
        raise NotStarted(
            say(
                f"I did not start training. Inference test: {tested.figures}. {tested.problem}. "
                f"Samples: {tested.file}\nTo start all the same, say: train anyway",
                f"没有启动训练。推理测试：{tested.figures}。{tested.problem}。"
                f"样本：{tested.file}\n仍要启动，请说：还是要训练",
            )
        )
    if tested.problem:
        verdict = say(
            f"{tested.problem}, but you asked to start anyway", f"{tested.problem}，但你要求仍然启动"
        )
    else:
        verdict = say("some groups have signal, so there is something to learn", "部分组有信号，可以学习")
    line = say(
        f"Inference test: {tested.figures}; {verdict}. Starting.",
        f"推理测试：{tested.figures}；{verdict}。启动训练。",
    )
    for _ in range(MOST_CORRECTIONS):
        started = yield Call("rl_start_training", {}, line)
        said = said_no(started)
        wanted, rest = read_settings(normalise(said or ""))
        if started.ok or not _is_correction(wanted, rest):
            break
        line = yield from _corrected(wanted, draft.config, say)
    if not started.ok:
        raise ToolFailed(started)
    return started, draft.notes


def _is_correction(wanted: Settings, rest: str) -> bool:
    """Whether settings, and nothing else, were said."""
    refuses = NEGATION.search(rest) or CHINESE_NEGATION.search(rest)
    others = {word.casefold() for word in names.content_words(rest)} - {"instead", "rather", "set", "change"}
    return bool(wanted.changes) and not (wanted.problems or unread(rest) or others or refuses)


def _corrected(wanted: Settings, config: dict[str, Any], say: Voice) -> Generator[Call, Result, str]:
    """Applies what the person said instead of yes; the line for the next start, which asks anew."""
    changes = dict(wanted.changes)
    keep_tasks_per_step(config, changes, wanted.tasks_per_step)
    line = say(f"Setting {settings_line(changes)}, as you said.", f"按你说的设置 {settings_line(changes)}。")
    edited = yield Call("rl_edit_config", {"changes": changes}, line)
    if not edited.ok:
        raise NotStarted(failure_text(edited, say))
    changed = changed_line(edited.section("changed"))
    return say(f"Changed: {changed}. Starting.", f"已改：{changed}。启动训练。")


def _look_for_a_start_that_was_cut_off(say: Voice) -> Generator[Call, Result, None]:
    """Nothing is started twice because nobody heard that it had been started; raises NotStarted."""
    listing = yield from must(
        Call(
            "rl_list_runs",
            {},
            say(
                "An earlier start was cut off. First: is that run there?",
                "上一次启动被中断，先看那个运行是否存在。",
            ),
        )
    )
    active = [row for row in listing.rows("runs") if row.get("state") not in ENDED]
    if active:
        raise NotStarted(
            say(
                "An earlier start was cut off, and a run goes on, so I started no other one:\n",
                "上一次启动被中断，而有运行正在进行，因此没有再启动：\n",
            )
            + run_lines(active, say)
            + say("\nTo start another one all the same, say: train anyway", "\n仍要启动，请说：还是要训练")
        )


def _plan(intent: Train, say: Voice) -> str:
    """The whole plan, in the text that goes with the first call."""
    if not intent.sure:
        return say("Does the request name an environment?", "请求里提到环境了吗？先看有哪些环境。")
    asked = [settings_line(intent.settings.changes)] if intent.settings.changes else []
    if (tasks := intent.settings.tasks_per_step) is not None:
        asked.append(say(f"{tasks} tasks per step", f"每步 {tasks} 道题"))
    settings = say(f" with {', '.join(asked)}", f"（{'，'.join(asked)}）") if asked else ""
    return say(
        f"Plan: choose the environment, configure{settings}, test inference, train, watch, report. "
        "First: which environments are there?",
        f"计划：选环境、配置{settings}、测试推理、训练、跟踪、汇报。先看有哪些环境。",
    )
