"""From an order to train to a draft that is ready: environment chosen, settings applied and read back."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import changed_line, settings_line
from environments.policies.operator.choosing import NotChosen, choose, unmatched
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.failures import failure_text
from environments.policies.operator.intents import Train
from environments.policies.operator.steps import Call, Result, must, text
from environments.policies.operator.wording import Voice, shorten


@dataclass(frozen=True)
class Draft:
    config: dict[str, Any]
    """Dotted field -> value, as the run will have it."""
    notes: list[str]
    """What the final report must repeat."""


def prepare(
    intent: Train, say: Voice, conversation: Conversation, plan: str
) -> Generator[Call, Result, Draft]:
    """The draft for `intent`; raises ToolFailed, or NotChosen with the answer as its message."""
    listing = yield from must(Call("rl_list_environments", {}, plan))
    rows = listing.rows("environments")
    match = names.environment(intent.subject, rows)
    earlier = conversation.last_environment() if match.kind == "none" else None
    if not intent.sure and match.kind not in ("exact", "misspelled") and not earlier:
        said = shorten(intent.subject)
        nothing = say(
            f'I cannot do that: "{said}" names no environment. ', f"这件事我做不了：“{said}”没有提到环境。"
        )
        raise NotChosen(nothing + unmatched(names.Match("none"), rows, say))

    notes = unread_note(match.unread, say)
    changes = dict(intent.settings.changes)
    if earlier and earlier[1] and not intent.settings.profile:
        asked = say(
            f"No environment is named, so I go on with {earlier[0]}: is its config still here?",
            f"没有指明环境，沿用 {earlier[0]}：先看它的配置还在不在。",
        )
        draft = yield Call("rl_get_current_config", {}, asked)
        if draft.ok and draft.data.get("environment") == earlier[0]:
            notes.append(say(f"Environment: {earlier[0]}, as before.", f"环境：{earlier[0]}，同前。"))
            return (yield from _configure(draft, intent, changes, say, notes))
        # The draft belongs to the session; a new session starts it again from what the conversation shows.
        changes = {**conversation.last_changes(), **changes}
    if earlier:
        match = names.Match("exact", earlier[0], earlier[0])
    if match.kind == "unknown":
        # The tool says the same in its own words; whoever reads the calls sees that the order failed.
        line = say(f'Is there an environment "{shorten(match.said)}"?', f"有环境“{shorten(match.said)}”吗？")
        yield Call("rl_describe_environment", {"name": match.said}, line)
    if match.name is None:
        raise NotChosen(unmatched(match, rows, say))
    chosen = yield from choose(match, rows, intent.settings.profile, say, " ".join(notes))
    notes += [chosen.note] if chosen.note else []
    return (yield from _configure(chosen.selection, intent, changes, say, notes))


def unread_note(unread: tuple[str, ...], say: Voice) -> list[str]:
    """Says which words of the request are left out."""
    if not unread:
        return []
    words = shorten(" ".join(unread))
    return [say(f'Not understood, so not applied: "{words}".', f"未能理解、因此没有采用：“{words}”。")]


def _configure(
    selection: Result, intent: Train, changes: dict[str, Any], say: Voice, notes: list[str]
) -> Generator[Call, Result, Draft]:
    """Edits the draft where settings were asked for, and reads it back."""
    profile = text(selection.data.get("profile"))
    said = say(f"Selected with profile {profile}.", f"已选定，配置档 {profile}。")
    kept = keep_tasks_per_step(selection.section("config"), changes, intent.settings.tasks_per_step)
    if changes:
        line = say(f"Setting {settings_line(changes)}.", f"设置 {settings_line(changes)}。")
        if kept:
            why = say(
                f"grpo.batch_size is {kept} so that each step keeps its number of tasks.",
                f"grpo.batch_size 为 {kept}，以保持每步的题数。",
            )
            notes = [*notes, why]
            line += say(f" {why}", why)
        edited = yield Call("rl_edit_config", {"changes": changes}, line)
        if not edited.ok:
            raise NotChosen(refused_settings(edited, changes, selection.section("locked"), say))
        changed = changed_line(edited.section("changed"))
        said = say(f"Changed: {changed}.", f"已改：{changed}。")
    reading = say(f"{said} Reading the resolved config.", f"{said}读取最终配置。")
    current = yield from must(Call("rl_get_current_config", {}, reading))
    return Draft(current.section("config"), notes)


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
    """Why the config tool took none of the changes, with the reasons of locked fields and sections."""
    why = [
        f"{name}: {reason}"
        for name, reason in locked.items()
        if any(field == name or field.startswith(f"{name}.") for field in changes)
        and str(reason) not in edited.message
    ]
    return "\n".join([failure_text(edited, say), *why])
