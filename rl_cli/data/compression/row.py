"""One row: read, counted, planned, shortened, put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.json_text import parse_json, row_json
from rl_cli.data.compression.conversation import Conversation, Summary, Unreadable, compressed
from rl_cli.data.compression.counting import Counting, Uncountable
from rl_cli.data.compression.forms import conversation_of
from rl_cli.data.compression.plan import Limits, Plan, Run, make_plan
from rl_cli.data.compression.report import RowReport, Status
from rl_cli.data.compression.rows_in import LONGEST_LINE, Line
from rl_cli.data.compression.shortening import shorten_results
from rl_cli.data.compression.summarizers import NotSummarised, Summarizer, as_turn

CLOSER = 0.93
"""A text is cut until it has so many tokens: each try aims at so much of what the last should have been."""


@dataclass(frozen=True)
class Ended:
    """A row that is done with."""

    report: RowReport
    text: bytes | None
    """What is written; None where nothing is."""


@dataclass(frozen=True)
class Tools:
    """What a row is compressed with. Without a summarizer it is only said what would be done."""

    limits: Limits
    counting: Counting
    summarizer: Summarizer | None


async def compress_row(line: Line, tools: Tools) -> Ended:
    """Makes a row fit, or says why it stays as it is.

    Raises:
        Stopped: Of the summarizer.
        OSError: A paid summary cannot be kept.
    """
    report = RowReport(line.place.file, line.place.line, Status.FITS)
    try:
        row = _row_of(line)
    except BadUsage as error:
        report.status, report.reason = Status.NO_ROW, str(error)
        return Ended(report, None)
    report.key = row["key"] if isinstance(row.get("key"), str) else None
    try:
        field, conversation = conversation_of(row)
        counts = await tools.counting.count([*conversation.texts, *conversation.beside])
    except (Unreadable, Uncountable) as error:
        report.status, report.reason = Status.UNREADABLE, str(error)
        return Ended(report, line.text)
    tokens, beside = counts[: len(conversation.texts)], sum(counts[len(conversation.texts) :])
    plan = _plan(conversation, tokens, beside, tools.limits)
    report.tokens_before = report.tokens_after = sum(counts)
    report.turns_before = report.turns_after = len(tokens)
    report.over_limit = sum(counts) > tools.limits.max_tokens
    if plan.reason:
        report.status, report.reason = Status.CANNOT_FIT, plan.reason
    if plan.is_empty:
        return Ended(report, line.text)
    if tools.summarizer is None:
        _note(report, plan, Status.COMPRESSED, plan.expected)
        return Ended(report, None)
    try:
        saved = await _shorten(conversation, tokens, plan, tools)
        missing = sum(tokens[at] - most for at, most in plan.shortened.items()) - saved
        if plan.expected + missing > tools.limits.max_tokens:
            report.status, report.reason = Status.CANNOT_FIT, "its results cannot be shortened far enough"
            return Ended(report, line.text)
        summaries, replaced = await _summaries(conversation, tokens, plan, report, tools)
    except (NotSummarised, Uncountable) as error:
        report.status, report.reason = Status.FAILED, str(error)
        return Ended(report, line.text)
    _note(report, plan, Status.COMPRESSED, sum(counts) - saved - replaced)
    made = compressed(row, field, conversation, summaries, bool(plan.shortened))
    return Ended(report, row_json(made))


def _row_of(line: Line) -> dict[str, Any]:
    if not line.text:
        raise BadUsage(f"longer than {LONGEST_LINE // 2**20} MiB")
    try:
        row = parse_json(line.text.decode())
    except ValueError as error:
        raise BadUsage(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise BadUsage("not a JSON object")
    return row


def _plan(conversation: Conversation, tokens: Sequence[int], beside: int, limits: Limits) -> Plan:
    plan = make_plan(conversation.roles, tokens, beside, limits)
    if not plan.shortened:
        return plan
    results = (at for at, role in enumerate(conversation.roles) if role == "tool")
    whole = {at for at in results if not conversation.results(at)}
    return make_plan(conversation.roles, tokens, beside, limits, whole) if whole else plan


async def _summaries(
    conversation: Conversation, tokens: Sequence[int], plan: Plan, report: RowReport, tools: Tools
) -> tuple[list[Summary], int]:
    """What takes the place of the runs, and the tokens that saves."""
    assert tools.summarizer
    made, saved = [], 0
    for run in plan.runs:
        places = range(run.start, run.end)
        turns = [(conversation.roles[at], conversation.texts[at]) for at in places]
        taken = sum(tokens[at] for at in places)
        per_token = sum(len(text) for _, text in turns) / taken
        most = tools.limits.per_summary
        try:
            words = await tools.summarizer.words(turns, most, int(most * per_token * CLOSER))
        except NotSummarised as error:
            if error.paid:
                report.calls += error.paid.calls
                report.cost_usd += error.paid.cost_usd
            raise
        if words.paid:
            report.calls += words.paid.calls
            report.cost_usd += words.paid.cost_usd
            report.paid.append(words.paid.key)
        summary, size = await _fitted(conversation, run, words.text, tools)
        made.append(summary)
        saved += taken - size
    return made, saved


async def _fitted(conversation: Conversation, run: Run, words: str, tools: Tools) -> tuple[Summary, int]:
    """The summary turn, cut so that it has no more tokens than it may; how many it has."""
    most, chars = tools.limits.per_summary, len(words)
    while True:
        text = as_turn(words, run.end - run.start, chars)
        (size,) = await tools.counting.count([conversation.summary_text(text)], ahead=True)
        if size <= most or not chars:
            return Summary(run, text), size
        chars = int(chars * most / size * CLOSER)


async def _shorten(conversation: Conversation, tokens: Sequence[int], plan: Plan, tools: Tools) -> int:
    """Shortens the results that the plan names; the tokens that saves."""
    saved = 0
    for at, most in plan.shortened.items():
        contents, size = conversation.results(at), tokens[at]
        keep = sum(map(len, contents))
        while size > most and keep:
            keep = int(keep * most / size * CLOSER)
            conversation.set_results(at, shorten_results(contents, keep))
            (size,) = await tools.counting.count([conversation.texts[at]], ahead=True)
        saved += tokens[at] - size
    return saved


def _note(report: RowReport, plan: Plan, status: Status, tokens: int) -> None:
    report.status, report.tokens_after, report.over_limit = status, tokens, False
    gone = sum(run.end - run.start - 1 for run in plan.runs)
    report.turns_after = (report.turns_before or 0) - gone
    report.summaries, report.shortened_results = len(plan.runs), len(plan.shortened)
