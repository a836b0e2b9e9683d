"""From a request to a selected environment: match, describe, select, and the stand-in where it must be."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import sizes_line
from environments.policies.operator.fixed_sentences import translated
from environments.policies.operator.steps import Call, Result, ToolFailed, must, text
from environments.policies.operator.wording import Voice, shorten


@dataclass(frozen=True)
class Chosen:
    """A selected environment."""

    name: str
    selection: Result
    """The result of rl_select_environment."""
    note: str
    """Why it is a stand-in, as the final report repeats it; "" where it is what was asked for."""


class NotChosen(Exception):
    """No environment could be chosen; the message is the answer."""


def unmatched(match: names.Match, rows: list[dict[str, Any]], say: Voice) -> str:
    """What to answer where `match` is not exactly one environment."""
    known = ", ".join(text(row.get("name")) for row in rows)
    others = ", ".join(match.others)
    if match.kind == "none":
        return say(
            f"Which environment? These are here: {known}. Say for example: train "
            f"{first_trainable(rows) or 'NAME'}",
            f"请问训练哪个环境？现有环境：{known}。例如：训练 {first_trainable(rows) or '环境名'}",
        )
    if match.kind == "several":
        return say(
            f"That can mean several environments: {others}. Name one.",
            f"可能指多个环境：{others}。请指明一个。",
        )
    said = shorten(match.said)
    none = say(f'There is no environment "{said}".', f"没有名为“{said}”的环境。")
    if len(match.others) >= len(rows):
        return none + say(f" These are here: {known}.", f"现有：{known}。")
    return none + say(f" Nearest: {others}. All: {known}.", f"最接近的：{others}。全部：{known}。")


def first_trainable(rows: list[dict[str, Any]]) -> str:
    return next((text(row.get("name")) for row in rows if row.get("trainable_here") is True), "")


def matched_line(match: names.Match, say: Voice) -> str:
    """Says how a name was understood, where it was not given exactly."""
    if match.kind == "misspelled":
        return say(f'I read "{match.said}" as {match.name}.', f"把“{match.said}”理解为 {match.name}。")
    if match.kind == "described":
        return say(
            f'"{shorten(match.said)}" fits {match.name} by its description.',
            f"按描述，“{shorten(match.said)}”对应 {match.name}。",
        )
    return say(f"The environment is {match.name}.", f"环境是 {match.name}。")


def choose(
    match: names.Match, rows: list[dict[str, Any]], profile: str | None, say: Voice, note: str = ""
) -> Generator[Call, Result, Chosen]:
    """Describes and selects the matched environment, or its stand-in; raises ToolFailed or NotChosen.

    `note` is said along with the first call.
    """
    wanted = match.name or ""
    row = next((row for row in rows if row.get("name") == wanted), {})
    line = " ".join(filter(None, [matched_line(match, say), note]))
    described = yield Call(
        "rl_describe_environment",
        {"name": wanted},
        say(f"{line} I look at its tasks and its reward first.", f"{line}先看它的任务和奖励。"),
    )
    sizes = sizes_line(described, say) if described.ok else ""
    about = say(f"{wanted} has tasks: {sizes}. ", f"{wanted} 的任务数：{sizes}。") if sizes else ""
    selection = yield _select(wanted, profile, say(f"{about}Selecting it.", f"{about}选定它。"))
    if selection.ok:
        return Chosen(wanted, selection, "")
    if selection.kind != "cannot_train_here":
        raise ToolFailed(selection)

    stand_in = text(row.get("stand_in"))
    why = translated(selection.message.rstrip("."), say)
    if wanted not in why:
        why = say(f"{wanted} cannot be trained here: {why}", f"{wanted} 无法在本机训练：{why}")
    real = translated(text(described.data.get("how_to_train_it")), say)
    how = say(f" To train {wanted} itself: {real}", f"要真正训练 {wanted}：{real}") if real else ""
    if not any(other.get("name") == stand_in and other.get("trainable_here") is True for other in rows):
        hint = f" ({selection.hint})" if selection.hint and not how else ""
        raise NotChosen(say(f"{why}{hint}.{how}", f"{why}{hint}。{how}"))
    line = say(f"{why}. I take {stand_in} in its place.{how}", f"{why}。改用 {stand_in}。{how}")
    # A profile was asked for with the other environment in mind; the stand-in has its own.
    selection = yield from must(_select(stand_in, None, line))
    note = say(f"{why}, so {stand_in} took its place.{how}", f"{why}，由 {stand_in} 代替。{how}")
    return Chosen(stand_in, selection, note)


def _select(name: str, profile: str | None, say: str) -> Call:
    return Call("rl_select_environment", {"name": name, **({"profile": profile} if profile else {})}, say)
