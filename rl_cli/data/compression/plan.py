"""What of a conversation has to go so that it fits: a pure function of roles and token counts.

Kept as they are: the first system, human, gpt and tool turn (with the gpt turn that the tool turn answers),
and the last turns. Turns between them are replaced by a summary, beginning with the second tool result, as
few as will do. Where that is not enough, turns between the head's own go too, and then the largest results
that are left are shortened. A tool turn is one unit with the gpt turn before it and all between them; nothing
divides it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

HEAD = ("system", "human", "gpt", "tool")
"""The roles whose first turn is kept."""
SHORTEST_RESULT = 100
"""Tokens that a shortened tool turn keeps at least."""
SUMMARY_SHARE = 4
"""A summary takes at most one part in so many of the limit."""


@dataclass(frozen=True)
class Limits:
    """What a conversation has to fit, in tokens and turns."""

    max_tokens: int = 15_250
    summary_tokens: int = 750
    keep_last: int = 4

    @property
    def per_summary(self) -> int:
        """Tokens of one summary turn, at most."""
        return min(self.summary_tokens, self.max_tokens // SUMMARY_SHARE)


@dataclass(frozen=True)
class Run:
    """The turns from `start` to before `end`, which one summary replaces."""

    start: int
    end: int


@dataclass(frozen=True)
class Plan:
    """What is to be done to one conversation."""

    runs: tuple[Run, ...] = ()
    """In order, apart from each other."""
    shortened: dict[int, int] = field(default_factory=dict)
    """Tool turns, and the tokens that each may keep."""
    expected: int = 0
    """Tokens of the conversation once that is done, at most."""
    reason: str = ""
    """Why it cannot fit; nothing is to be done then."""

    @property
    def is_empty(self) -> bool:
        return not self.runs and not self.shortened


def make_plan(
    roles: Sequence[str],
    tokens: Sequence[int],
    beside: int,
    limits: Limits,
    whole_results: Collection[int] = (),
) -> Plan:
    """The least that makes a conversation fit.

    Args:
        roles: `system`, `human`, `gpt` or `tool` of each turn.
        tokens: Of each turn.
        beside: Tokens of what belongs to the conversation and is no turn.
        limits: What it has to fit.
        whole_results: Tool turns that cannot be shortened.
    """
    whole = total = beside + sum(tokens)
    runs = []
    for region in _regions(roles, limits.keep_last):
        if total <= limits.max_tokens:
            break
        run, taken = _shortest_run(region, tokens, total - limits.max_tokens + limits.per_summary)
        if taken > limits.per_summary:
            runs.append(run)
            total += limits.per_summary - taken
    gone = {at for run in runs for at in range(run.start, run.end)}
    fixed = gone.union(whole_results)
    results = {at: tokens[at] for at, role in enumerate(roles) if role == "tool" and at not in fixed}
    shortened = _levelled(results, total - limits.max_tokens)
    total -= sum(results[at] - kept for at, kept in shortened.items())
    if total > limits.max_tokens:
        reason = f"what has to stay takes at least {total:,} tokens, and {limits.max_tokens:,} are the limit"
        return Plan(expected=whole, reason=reason)
    return Plan(tuple(sorted(runs, key=lambda run: run.start)), shortened, total)


def units(roles: Sequence[str]) -> Iterator[range]:
    """The turns in units: a tool turn goes with the last gpt turn before it, and with what stands between."""
    starts: list[int] = []
    caller: int | None = None
    for at, role in enumerate(roles):
        if role == "tool" and caller is not None:
            del starts[caller + 1 :]
        elif role != "tool" or not starts:
            if role == "gpt":
                caller = len(starts)
            starts.append(at)
    return map(range, starts, [*starts[1:], len(roles)])


def _regions(roles: Sequence[str], keep_last: int) -> list[list[range]]:
    """What may go: neighbouring units without a kept turn. First those after the first tool turn."""
    firsts = {roles.index(role) for role in HEAD if role in roles}
    kept = firsts | set(range(max(0, len(roles) - keep_last), len(roles)))
    regions: list[list[range]] = [[]]
    for unit in units(roles):
        if kept.isdisjoint(unit):
            regions[-1].append(unit)
        else:
            regions.append([])
    tool = roles.index("tool") if "tool" in roles else -1
    return sorted(filter(None, regions), key=lambda region: (region[0].start < tool, region[0].start))


def _shortest_run(region: Sequence[range], tokens: Sequence[int], needed: int) -> tuple[Run, int]:
    """The first units of a region that have the needed tokens, else all of them; how many they have."""
    taken = 0
    for unit in region:
        taken += sum(tokens[at] for at in unit)
        if taken >= needed:
            break
    return Run(region[0].start, unit.stop), taken


def _levelled(results: dict[int, int], excess: int) -> dict[int, int]:
    """The largest results cut to one level so that `excess` tokens go; SHORTEST_RESULT of each stay."""
    sizes = sorted((size for size in results.values() if size > SHORTEST_RESULT), reverse=True)
    if excess <= 0 or not sizes:
        return {}
    level, held = SHORTEST_RESULT, 0
    for count, (size, following) in enumerate(zip(sizes, [*sizes[1:], SHORTEST_RESULT], strict=True), 1):
        held += size
        if held - count * following >= excess:
            level = (held - excess) // count
            break
    return {at: level for at, size in results.items() if size > level}
