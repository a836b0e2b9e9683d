"""The training procedure: choose, configure, test inference, start, watch, report."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import (
    changed_line,
    config_line,
    failure_text,
    inference_line,
    settings_line,
)
from environments.policies.operator.choosing import Chosen, NotChosen, choose, unmatched
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import TestInference, Train
from environments.policies.operator.settings import Settings
from environments.policies.operator.steps import Call, Procedure, Result, ToolFailed, figure, must, text
from environments.policies.operator.watching import watch
from environments.policies.operator.wording import Voice, shorten

MORE_TASKS = 12
"""Tasks of the second inference test, made where none of the first few groups had signal."""


class NotStarted(Exception):
    """Training was not begun; the message says why."""


def train(intent: Train, say: Voice, conversation: Conversation) -> Procedure:
    try:
        run, notes = yield from _start(intent, say, conversation)
    except NotStarted as reason:
        return str(reason)
    except (NotChosen, ToolFailed) as error:
        why = failure_text(error.result, say) if isinstance(error, ToolFailed) else str(error)
        return say(f"{why}\nNothing was started.", f"{why}\n没有启动任何训练。")
    return (yield from watch(run, say, notes))


def test(intent: TestInference, say: Voice, conversation: Conversation) -> Procedure:
    """The inference test alone."""
    begun = say("I test inference without training.", "只测试推理，不训练。")
    try:
        yield from _prepare(intent.subject, Settings(), say, conversation, begun)
    except NotChosen as error:
        return str(error)
    row, _ = yield from _test(say, say("Testing the starting checkpoint.", "测试起始检查点。"), 16)
    return say(f"Inference test: {inference_line(row, say)}.", f"推理测试：{inference_line(row, say)}。")


def _start(
    intent: Train, say: Voice, conversation: Conversation
) -> Generator[Call, Result, tuple[Result, list[str]]]:
    """Everything up to a started run: the result of rl_start_training, and what the report must repeat."""
    config, notes = yield from _prepare(
        intent.subject, intent.settings, say, conversation, _plan(intent, say), intent.sure
    )
    group = config.get("grpo.group_size")
    row, file = yield from _test(
        say,
        say(
            f"Config: {config_line(config, say)}. Before training I test inference.",
            f"配置：{config_line(config, say)}。训练前先测试推理。",
        ),
        group if isinstance(group, int) else 16,
    )
    figures = inference_line(row, say)
    if (why := _no_signal(row, say)) and not intent.anyway:
        raise NotStarted(
            say(
                f"I did not start training. Inference test: {figures}. {why} Samples: {file}. To start all the same, say: train anyway",
                f"没有启动训练。推理测试：{figures}。{why}样本：{file}。仍要启动，请说：还是要训练",
            )
        )
    verdict = why or say(
        "some groups have signal, so there is something to learn from", "部分组有信号，可以学习"
    )
    begin = say(
        f"Inference test: {figures}; {verdict.rstrip('.。')}. Starting.",
        f"推理测试：{figures}；{verdict.rstrip('.。')}。启动训练。",
    )
    return (yield from must(Call("rl_start_training", {}, begin))), notes


def _plan(intent: Train, say: Voice) -> str:
    asked = settings_line(intent.settings.changes)
    if intent.settings.tasks_per_step is not None:
        tasks = intent.settings.tasks_per_step
        asked = ", ".join(filter(None, [asked, say(f"{tasks} tasks per step", f"每步 {tasks} 道题")]))
    with_settings = say(f" with {asked}", f"（{asked}）") if asked else ""
    return say(
        f"Plan: choose the environment, configure{with_settings}, test inference, train, watch, report. First: which environments are there?",
        f"计划：选环境、配置{with_settings}、测试推理、训练、跟踪、汇报。先看有哪些环境。",
    )


def _prepare(
    subject: str, settings: Settings, say: Voice, conversation: Conversation, plan: str, sure: bool = True
) -> Generator[Call, Result, tuple[dict[str, Any], list[str]]]:
    """The resolved config of the draft, ready to run, and what the report must repeat."""
    listing = yield from must(Call("rl_list_environments", {}, plan))
    rows = listing.rows("environments")
    match = names.environment(subject, rows)
    unread = [word for word in match.unread if word]
    changes = dict(settings.changes)
    if (
        not sure
        and match.kind not in ("exact", "misspelled")
        and not (match.kind == "none" and conversation.last_environment())
    ):
        raise NotStarted(
            say(
                f'I cannot do that: "{shorten(subject)}" names none of the environments that I can train. ',
                f"这件事我做不了：“{shorten(subject)}”没有提到可训练的环境。",
            )
            + unmatched(names.Match("none"), rows, say)
        )
    earlier = conversation.last_environment() if match.kind == "none" else None
    if earlier and earlier[1]:
        draft = yield Call(
            "rl_get_current_config",
            {},
            say(
                f"No environment is named, so I go on with {earlier[0]}: is its config still here?",
                f"没有指明环境，沿用 {earlier[0]}：先看它的配置还在不在。",
            ),
        )
        if draft.ok and draft.data.get("environment") == earlier[0]:
            notes = [say(f"Environment: {earlier[0]}, as before.", f"环境：{earlier[0]}，同前。")]
            config = yield from _configure(draft.section("config"), draft, settings, changes, say, notes)
            return config, _with_unread(notes, unread, say)
        changes = {**conversation.last_changes(), **changes}
    if earlier:
        match = names.Match("exact", earlier[0], earlier[0], unread=match.unread)
    if match.name is None:
        raise NotChosen(unmatched(match, rows, say))
    chosen: Chosen = yield from choose(match, rows, settings.profile, say)
    notes = [chosen.note] if chosen.note else []
    config = yield from _configure(
        chosen.selection.section("config"), chosen.selection, settings, changes, say, notes
    )
    return config, _with_unread(notes, unread, say)


def _with_unread(notes: list[str], unread: list[str], say: Voice) -> list[str]:
    if unread:
        words = shorten(" ".join(unread))
        notes = [
            *notes,
            say(
                f'Not understood in the request, so not applied: "{words}".',
                f"请求中未能理解、因此没有采用的部分：“{words}”。",
            ),
        ]
    return notes


def _configure(
    config: dict[str, Any],
    selection: Result,
    settings: Settings,
    changes: dict[str, Any],
    say: Voice,
    notes: list[str],
) -> Generator[Call, Result, dict[str, Any]]:
    """Edits the draft where settings were asked for, and reads it back."""
    kept = keep_tasks_per_step(config, changes, settings.tasks_per_step)
    said = say("Selected with its defaults.", "已选定，使用默认配置。")
    if kept:
        notes.append(
            say(
                f"grpo.batch_size is set to {kept} so that each step keeps its number of tasks.",
                f"grpo.batch_size 设为 {kept}，以保持每步的题数。",
            )
        )
    if changes:
        said = say(f"Setting {settings_line(changes)}.", f"设置 {settings_line(changes)}。")
        edited = yield Call("rl_edit_config", {"changes": changes}, f"{said} {notes[-1]}" if kept else said)
        if not edited.ok:
            raise NotChosen(refused_settings(edited, changes, selection.section("locked"), say))
        said = say(
            f"Changed: {changed_line(edited.section('changed'))}.",
            f"已改：{changed_line(edited.section('changed'))}。",
        )
    current = yield from must(
        Call("rl_get_current_config", {}, said + say(" Reading the resolved config.", "读取最终配置。"))
    )
    return current.section("config")


def keep_tasks_per_step(
    config: dict[str, Any], changes: dict[str, Any], tasks: int | float | None
) -> int | None:
    """Adds the batch size that `changes` leave open: tasks per step times group size.

    It is left alone where the batch size was asked for, or where the group size divides it.

    Returns:
        The batch size that was added, or None.
    """
    batch, group = config.get("grpo.batch_size"), config.get("grpo.group_size")
    new_group = changes.get("grpo.group_size", group)
    if "grpo.batch_size" in changes or not isinstance(new_group, int) or new_group < 1:
        return None
    if tasks is None:
        if not isinstance(batch, int) or not isinstance(group, int) or group < 1 or batch % new_group == 0:
            return None
        tasks = batch // group
    if not isinstance(tasks, int):
        return None
    changes["grpo.batch_size"] = tasks * new_group
    return tasks * new_group


def refused_settings(edited: Result, changes: dict[str, Any], locked: dict[str, Any], say: Voice) -> str:
    """Why the config tool took none of the changes, with the reasons of locked fields."""
    line = failure_text(edited, say)
    why = [
        f"{name}: {reason}"
        for name, reason in locked.items()
        if name in changes and str(reason) not in edited.message
    ]
    return "\n".join([line, *why])


def _test(say: Voice, begun: str, group_size: int) -> Generator[Call, Result, tuple[dict[str, Any], str]]:
    """The starting checkpoint's figures, and the file with the samples. Few groups without signal are no
    proof: then more tasks are tried once."""
    tested = yield from must(Call("rl_test_inference", {}, begun))
    row = _first(tested)
    if _flat(row) and not _all_failed(row):
        line = inference_line(row, say)
        tested = yield from must(
            Call(
                "rl_test_inference",
                {"tasks": MORE_TASKS, "group_size": group_size},
                say(
                    f"Inference test: {line}. So few groups prove little: once more on {MORE_TASKS} tasks, in the groups of the config.",
                    f"推理测试：{line}。组数太少，不足为凭：再用 {MORE_TASKS} 道题、按配置的组大小测一次。",
                ),
            )
        )
        row = _first(tested)
    return row, text(tested.data.get("file"))


def _first(tested: Result) -> dict[str, Any]:
    rows = tested.rows("results")
    if not rows:
        raise ToolFailed(
            Result(tested.tool, '{"ok": false, "error": {"type": "empty", "message": "it gave no figures"}}')
        )
    return rows[0]


def _flat(row: dict[str, Any]) -> bool:
    share = figure(row.get("groups_without_signal"))
    return share is not None and share >= 1


def _all_failed(row: dict[str, Any]) -> bool:
    errors, rollouts = row.get("errors"), figure(row.get("rollouts"))
    counts = [figure(count) or 0 for count in errors.values()] if isinstance(errors, dict) else []
    return bool(rollouts) and sum(counts) >= (rollouts or 0)


def _no_signal(row: dict[str, Any], say: Voice) -> str:
    """Why training could teach nothing, "" where it can."""
    if _all_failed(row):
        return say("Every rollout failed, so nothing can be judged.", "所有 rollout 都失败，无从判断。")
    if not _flat(row):
        return ""
    accuracy = figure(row.get("accuracy"))
    if accuracy is not None and accuracy >= 1:
        return say(
            "No group has signal: every task is solved every time, so GRPO has nothing left to learn.",
            "没有任何组有信号：每道题每次都做对，GRPO 已无可学。",
        )
    if accuracy == 0:
        return say(
            "No group has signal: no task is ever solved, so GRPO has no success to learn from. A better starting checkpoint or easier tasks help.",
            "没有任何组有信号：一道题都没做对过，GRPO 没有可供学习的成功样本。需要更好的起始检查点或更容易的题目。",
        )
    return say(
        "No group has signal: the rollouts of each group all get the same reward, so GRPO has nothing to compare.",
        "没有任何组有信号：每组内奖励全部相同，GRPO 无从比较。",
    )
