"""Looking at environments and at the draft of a config, and editing it."""

from __future__ import annotations

from environments.policies.operator import names
from environments.policies.operator.answers import (
    changed_line,
    environment_lines,
    machine_line,
    settings_line,
    sizes_line,
)
from environments.policies.operator.choosing import NotChosen, choose, unmatched
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.fixed_sentences import translated
from environments.policies.operator.intents import EditConfig, Intent, Select
from environments.policies.operator.preparing import keep_tasks_per_step, refused_settings
from environments.policies.operator.steps import Call, Declined, Procedure, Result, must, text
from environments.policies.operator.talking import cannot
from environments.policies.operator.wording import Voice, shorten


def list_environments(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(
        Call("rl_list_environments", {}, say("Looking up the environments.", "查看有哪些环境。"))
    )
    rows = listing.rows("environments")
    machine = machine_line(listing.section("machine"), say)
    return say(f"Environments ({machine}):\n", f"环境（{machine}）：\n") + environment_lines(rows, say)


def describe(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_environments", {}, say("Looking up the name.", "查找名称。")))
    rows = listing.rows("environments")
    match = names.environment(intent.subject, rows)
    if (
        match.kind == "unknown"
        and not names.named(intent.subject)
        and "env" not in intent.subject.lower()
        and "环境" not in intent.subject
    ):
        return cannot(intent.subject, say)
    if match.name is None:
        return Declined(unmatched(match, rows, say))
    line = (
        say(f'I read "{match.said}" as {match.name}. ', f"把“{match.said}”理解为 {match.name}。")
        if match.kind == "misspelled"
        else ""
    )
    described = yield from must(
        Call(
            "rl_describe_environment",
            {"name": match.name},
            line + say(f"Reading {match.name}.", f"读取 {match.name}。"),
        )
    )
    return line + description_text(described, say)


def description_text(described: Result, say: Voice) -> str:
    data = described.data
    lines = [f"{text(data.get('name'))}: {text(data.get('description'))}"]
    if sizes := sizes_line(described, say):
        lines.append(say(f"Tasks: {sizes}", f"任务数：{sizes}"))
    if reward := " ".join(text(data.get("reward")).split()):
        lines.append(say(f"Reward: {shorten(reward, 300)}", f"奖励：{shorten(reward, 300)}"))
    toolsets = data.get("toolsets")
    if isinstance(toolsets, list) and toolsets:
        used = ", ".join(str(name) for name in toolsets)
        lines.append(say(f"Toolsets: {used}", f"工具集：{used}"))
    messages = described.section("example").get("messages")
    asked = (
        [text(m.get("content")) for m in messages if isinstance(m, dict) and m.get("role") == "user"]
        if isinstance(messages, list)
        else []
    )
    if asked:
        lines.append(say(f"Example: {shorten(asked[-1], 300)}", f"示例：{shorten(asked[-1], 300)}"))
    if data.get("trainable_here") is True:
        lines.append(
            say(
                f"It can be trained here: train {text(data.get('name'))}",
                f"可在本机训练：训练 {text(data.get('name'))}",
            )
        )
    else:
        lines.append(
            say(
                f"It cannot be trained here: {translated(text(data.get('why_not')), say)}",
                f"无法在本机训练：{translated(text(data.get('why_not')), say)}",
            )
        )
        if how := translated(text(data.get("how_to_train_it")), say):
            lines.append(say(f"To train it: {how}", f"要训练它：{how}"))
    return "\n".join(lines)


def select(intent: Select, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_environments", {}, say("Looking up the name.", "查找名称。")))
    rows = listing.rows("environments")
    match = names.environment(intent.subject, rows)
    if match.name is None:
        return (
            cannot(intent.subject, say)
            if match.kind == "unknown" and not names.named(intent.subject)
            else Declined(unmatched(match, rows, say))
        )
    try:
        chosen = yield from choose(match, rows, intent.settings.profile, say)
    except NotChosen as reason:
        return Declined(str(reason))
    done = say(f"{chosen.name} is selected. To start: train", f"已选定 {chosen.name}。要开始，请说：训练")
    if intent.settings.changes:
        edit = EditConfig(intent.subject, intent.settings)
        done = f"{(yield from edit_config(edit, say, conversation))}\n{done}"
    return "\n".join(filter(None, [chosen.note, done]))


def show_config(intent: Intent, say: Voice, conversation: Conversation) -> Procedure:
    current = yield from must(
        Call("rl_get_current_config", {}, say("Reading the current config.", "读取当前配置。"))
    )
    lines = [f"{text(current.data.get('environment'))} ({text(current.data.get('profile'))})"]
    lines += [f"  {settings_line({name: value})}" for name, value in current.section("config").items()]
    if changed := current.section("changed"):
        lines.append(
            say(
                f"Changed from the profile: {settings_line(changed)}",
                f"与配置档不同：{settings_line(changed)}",
            )
        )
    return "\n".join(lines)


def edit_config(intent: EditConfig, say: Voice, conversation: Conversation) -> Procedure:
    current = yield from must(
        Call("rl_get_current_config", {}, say("Reading the current config first.", "先读取当前配置。"))
    )
    changes = dict(intent.settings.changes)
    keep_tasks_per_step(current.section("config"), changes, intent.settings.tasks_per_step)
    edited = yield Call(
        "rl_edit_config",
        {"changes": changes},
        say(f"Setting {settings_line(changes)}.", f"设置 {settings_line(changes)}。"),
    )
    if not edited.ok:
        return refused_settings(edited, changes, current.section("locked"), say)
    changed = changed_line(edited.section("changed"))
    return say(f"Changed: {changed}.", f"已改：{changed}。")
