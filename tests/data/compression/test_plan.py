"""What goes and what stays: the plan, for any conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rl_cli.data.compression.plan import SHORTEST_RESULT, Limits, Run, make_plan, units

CALL = ("gpt", "tool")
TURNS = st.one_of(
    st.tuples(st.sampled_from(["human", "gpt"])),
    st.just(CALL),
    st.just(("gpt", "tool", "tool")),
)
CONVERSATIONS = st.tuples(st.booleans(), st.lists(TURNS, min_size=1, max_size=20)).map(
    lambda found: ["system"] * found[0] + ["human"] + [role for turn in found[1] for role in turn]
)
LIMITS = st.builds(
    Limits,
    max_tokens=st.integers(200, 6_000),
    summary_tokens=st.integers(10, 800),
    keep_last=st.integers(0, 6),
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[str], list[int], int]:
    roles = draw(CONVERSATIONS)
    tokens = draw(st.lists(st.integers(0, 1_500), min_size=len(roles), max_size=len(roles)))
    return roles, tokens, draw(st.integers(0, 300))


@given(conversations(), LIMITS)
def test_a_plan_fits_or_says_why_and_touches_nothing_that_is_kept(
    conversation: tuple[list[str], list[int], int], limits: Limits
) -> None:
    roles, tokens, beside = conversation
    total = beside + sum(tokens)
    plan = make_plan(roles, tokens, beside, limits)
    assert bool(plan.reason) == (plan.is_empty and total > limits.max_tokens)
    assert plan.expected <= max(total, limits.max_tokens)
    if plan.is_empty:
        return
    assert plan.expected <= limits.max_tokens < total
    firsts = {roles.index(role) for role in ("system", "human", "gpt", "tool") if role in roles}
    last = set(range(max(0, len(roles) - limits.keep_last), len(roles)))
    edges = {at for unit in units(roles) for at in (unit.start, unit.stop)}
    for run in plan.runs:
        assert {run.start, run.end} <= edges
        assert not set(range(run.start, run.end)) & (firsts | last)
        assert sum(tokens[run.start : run.end]) > limits.per_summary
    gone = {at for run in plan.runs for at in range(run.start, run.end)}
    for at, kept in plan.shortened.items():
        assert roles[at] == "tool"
        assert at not in gone
        assert SHORTEST_RESULT <= kept < tokens[at]


@given(conversations(), LIMITS)
def test_one_turn_less_would_not_do(conversation: tuple[list[str], list[int], int], limits: Limits) -> None:
    roles, tokens, beside = conversation
    plan = make_plan(roles, tokens, beside, limits)
    if len(plan.runs) != 1 or plan.shortened:
        return
    (run,) = plan.runs
    *_, last = (unit for unit in units(roles) if unit.stop == run.end)
    shorter = beside + sum(tokens) - sum(tokens[run.start : last.start]) + limits.per_summary
    assert last.start == run.start or shorter > limits.max_tokens


def test_what_goes_begins_with_the_second_result() -> None:
    roles = ["system", "human", *CALL * 6, "gpt"]
    plan = make_plan(roles, [100] * len(roles), 0, Limits(1_200, 100, 4))
    assert plan.runs == (Run(4, 8),)


def test_a_result_stays_with_its_call_whatever_stands_between() -> None:
    roles = ["system", "human", *CALL, "gpt", "human", "tool", "tool", "gpt", "gpt", "tool"]
    assert [list(unit) for unit in units(roles)] == [[0], [1], [2, 3], [4, 5, 6, 7], [8], [9, 10]]
    assert [list(unit) for unit in units(["tool", "tool", "human", "tool"])] == [[0, 1], [2, 3]]


def test_results_that_cannot_be_shortened_make_others_shorter_or_the_row_stay() -> None:
    roles, tokens = ["human", *CALL * 2, "gpt"], [50, 50, 3_000, 50, 4_000, 50]
    assert make_plan(roles, tokens, 0, Limits(5_000), {2}).shortened == {4: 1_800}
    assert "7,200" in make_plan(roles, tokens, 0, Limits(5_000), {2, 4}).reason


def test_trj_03_the_heavy_part_goes_though_the_first_call_is_late() -> None:
    chat = ["system", "human", "gpt", *["human", "gpt"] * 4, "human"]
    roles = [*chat, *CALL * 4, "human", "gpt", "human", "gpt"]
    tokens = [100] * len(chat) + [50, 3_000] * 4 + [100] * 4
    plan = make_plan(roles, tokens, 0, Limits(9_000, 500, 4))
    first = roles.index("tool")
    assert plan.runs == (Run(first + 1, first + 5),)
    assert not plan.shortened


def test_trj_04_a_short_one_is_shortened_or_named() -> None:
    roles = ["system", "human", *CALL * 2, "human", "gpt"]
    tokens = [50, 50, 50, 20_000, 50, 50, 50, 50]
    shortened = make_plan(roles, tokens, 0, Limits(5_000, 500, 5))
    assert shortened.shortened == {3: 4_650}
    tokens[3], tokens[1] = 50, 20_000
    assert "20,350" in make_plan(roles, tokens, 0, Limits(5_000, 500, 5)).reason
