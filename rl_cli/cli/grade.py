"""`rl-cli grade`: does an answer state the right number, and is it marked as it was asked for?"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from environments.rewards.well_formed import Mark
from rl_cli.cli.app import single
from rl_cli.cli.jsonl import convert_lines, print_exactly, texts_of, with_other_fields
from rl_cli.cli.output import say
from rl_cli.core.errors import BadUsage, WorkFailed

if TYPE_CHECKING:
    from environments.rewards.second_opinion import SecondOpinion

READ = ("gold", "answer")
"""The fields of a line that are graded; the others are kept."""

app = single()


@app.command()
def grade(
    gold: Annotated[
        str | None, typer.Option(help="The right answer: a number, or text with '#### N'.")
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='Read lines {"id", "gold", "answer"}, print one for each.')
    ] = False,
    mark: Annotated[
        Mark, typer.Option(help="How answers were to be marked; format_ok says whether they are.")
    ] = Mark.HASHES,
    second_opinion: Annotated[
        bool, typer.Option("--second-opinion", help="Add what math-verify says, for at most 5 s each.")
    ] = False,
) -> None:
    """Grade an answer on standard input against --gold, or a line for each with --jsonl.

    Prints {"correct", "extracted", "reason", "format_ok", "seconds"}; for a line also its "id", and its other
    fields but "gold" and "answer". A line that cannot be read is reported on stderr with its number and left
    out; the exit code is then 1. It is also 1 where a line's gold is no number, and 2 where --gold is none. A
    wrong answer is no failure.
    """
    if jsonl == (gold is not None):
        raise BadUsage("give either --gold, with the answer on standard input, or --jsonl")
    if gold is not None and not _is_number(gold):
        raise BadUsage(f"--gold {gold!r} is no number", "give a number, or text with '#### N'")
    counts: Counter[str] = Counter()
    with _opinions(second_opinion) as opinions:
        if gold is not None:
            with open(0, encoding="utf-8", errors="surrogateescape", newline="", closefd=False) as text:
                print_exactly(_grade(gold, text.read(), mark, opinions, counts))
            return
        _grade_lines(mark, opinions, counts)


def _grade_lines(mark: Mark, opinions: SecondOpinion | None, counts: Counter[str]) -> None:
    def graded(row: dict[str, Any]) -> dict[str, Any]:
        return with_other_fields(row, READ, _grade(*_texts(row), mark, opinions, counts))

    failures: list[str] = []
    try:
        convert_lines(graded)
    except WorkFailed as unread:
        failures.append(str(unread))
    finally:
        say(_summary(counts), error=True)
    if counts["unusable"]:
        failures.append(
            f"{counts['unusable']} of {counts['graded'] + counts['unusable']} golds are no numbers"
        )
    if failures:
        raise WorkFailed("; ".join(failures))


def _is_number(gold: str) -> bool:
    from environments.rewards.numbers import read_gold

    return read_gold(gold) is not None


def _opinions(wanted: bool) -> Any:
    if not wanted:
        return nullcontext()
    from environments.rewards.second_opinion import SecondOpinion

    return SecondOpinion()


def _texts(row: dict[str, Any]) -> tuple[str, str]:
    gold = row.get("gold")
    if isinstance(gold, int | float) and not isinstance(gold, bool):
        row = {**row, "gold": str(gold)}
    gold, answer = texts_of(row, READ)
    return gold, answer


def _grade(
    gold: str, answer: str, mark: Mark, opinions: SecondOpinion | None, counts: Counter[str]
) -> dict[str, Any]:
    from environments.rewards.numbers import NO_GOLD, grade_number
    from environments.rewards.well_formed import well_formed

    start = time.perf_counter()
    found = grade_number(gold, answer)
    row = {**asdict(found), "format_ok": well_formed(answer, mark)}
    row["seconds"] = round(time.perf_counter() - start, 6)
    if opinions:
        row["second_opinion"] = opinions.correct(gold, answer)
    unusable = found.reason == NO_GOLD
    counts += Counter(
        graded=not unusable,
        correct=found.correct,
        formed=row["format_ok"] and not unusable,
        silent=found.extracted is None and not unusable,
        unusable=unusable,
    )
    return row


def _summary(counts: Counter[str]) -> str:
    return (
        f"{counts['graded']} graded: {counts['correct']} correct, {counts['formed']} well formed, "
        f"{counts['silent']} without an answer; {counts['unusable']} unusable golds"
    )
