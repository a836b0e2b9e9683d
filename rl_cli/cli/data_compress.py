"""`rl-cli data compress`: conversations made to fit a number of tokens."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl_cli.cli.app import JsonOption, run_async
from rl_cli.cli.output import print_fields, print_json, say
from rl_cli.core.errors import BadUsage, Refused, WorkFailed

if TYPE_CHECKING:
    from rl_cli.data.compression.job import Compression
    from rl_cli.data.compression.report import Totals
    from rl_cli.data.compression.tokenizers import Tokenizer
    from rl_cli.data.compression.writer import Writer

PROGRESS_SECONDS = 10.0


class OverLimit(StrEnum):
    KEEP = "keep"
    SPLIT = "split"


def compress(
    input_: Annotated[
        list[str],
        typer.Option("--input", help="A JSONL file, or a batch by its name; give it once for each."),
    ],
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            help="Folder, tokenizer.json, name on the Hugging Face hub, tiktoken:NAME or estimate.",
        ),
    ],
    output: Annotated[Path | None, typer.Option("--output", help="The JSONL file to write.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="What a conversation has to fit.")] = 15_250,
    summary_tokens: Annotated[int, typer.Option("--summary-tokens", help="Of a summary, at most.")] = 750,
    keep_last: Annotated[int, typer.Option("--keep-last", help="Turns at the end that stay.")] = 4,
    summarizer: Annotated[
        str, typer.Option("--summarizer", help="A model (provider/name), or extractive: offline and free.")
    ] = "extractive",
    base_url: Annotated[str | None, typer.Option("--base-url", help="Where the model is.")] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", help="Requests at one time, at most.")] = 50,
    summary_seconds: Annotated[
        float, typer.Option("--summary-seconds", help="A row waits so long for its summary.")
    ] = 300.0,
    over_limit: Annotated[
        OverLimit, typer.Option("--over-limit", help="Rows that cannot fit: keep, or split off into a file.")
    ] = OverLimit.KEEP,
    sample_percent: Annotated[
        float, typer.Option("--sample-percent", help="Take so many of a hundred rows only.")
    ] = 100.0,
    seed: Annotated[int, typer.Option("--seed", help="Of the sample.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Make conversations fit a number of tokens: turns in the middle become one summary.

    Rows are canonical (messages) or of the from/value form (conversations), and keep theirs. The first
    system, human, gpt and tool turn and the last turns stay as they are. Every row of the input is in the
    output, in the same order. After a kill the same command goes on, and pays for no summary twice.
    """
    from rl_cli.data.compression.job import Compression
    from rl_cli.data.compression.plan import Limits
    from rl_cli.data.compression.tokenizers import open_tokenizer
    from rl_cli.data.compression.writer import writer_of
    from rl_cli.data.compressor import dry_run as try_out

    if output is None and not dry_run:
        raise BadUsage("where to write is not said", "give --output FILE, or --dry-run")
    job = Compression(
        tuple(map(_file_of, input_)),
        output or Path(),
        Limits(max_tokens, summary_tokens, keep_last),
        concurrency,
        summary_seconds,
        over_limit.value,
        sample_percent,
        seed,
    )
    counter = open_tokenizer(tokenizer)
    if dry_run:
        _show(run_async(try_out(job, counter)), json_)
        return
    writer = writer_of(
        summarizer, f"compress-{job.output.stem}", base_url, lambda line: say(line, error=True)
    )
    report = run_async(_compress(job, counter, writer))
    _show(report, json_)
    _judge(report)


def _file_of(name: str) -> Path:
    """The file of that name, else what a batch of that name has merged."""
    from rl_cli.core.settings import home

    if Path(name).exists():
        return Path(name)
    batch = home() / "batches" / name
    if "/" in name or not batch.is_dir():
        raise BadUsage(f"there is no file and no batch {name}", "name a JSONL file, or a batch")
    rows = batch / "trajectories.jsonl"
    if not rows.exists():
        raise BadUsage(f"the batch {name} is not merged yet", f"rl-cli data merge {name}")
    return rows


async def _compress(job: Compression, tokenizer: Tokenizer, writer: Writer | None) -> dict[str, Any]:
    from rl_cli.data.compression.interrupts import interruptible
    from rl_cli.data.compressor import compress

    return await interruptible(
        lambda stop: compress(job, tokenizer, writer, stop, _Progress()),
        lambda: say("finishing what is under way; Ctrl-C once more stops now", error=True),
    )


class _Progress:
    """Lines for a person who waits: one that is written over in a terminal, else a new one now and then."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._first: tuple[float, int] | None = None
        """When it was first told of rows, and of how many: an earlier process may have written some."""

    def __call__(self, totals: Totals) -> None:
        now, in_terminal = time.monotonic(), sys.stderr.isatty()
        if not in_terminal and now - self._told < PROGRESS_SECONDS:
            return
        began, before = self._first = self._first or (now, totals.rows)
        rate = (totals.rows - before) / (now - began) if now > began else 0.0
        self._told, seen = now, totals.as_dict()
        line = (
            f"{totals.rows:,} rows, {rate:.1f} a second: {seen['compressed']:,} compressed, "
            f"{seen['failed']:,} failed, {seen['calls']:,} requests, ${seen['cost_usd']:.2f}"
        )
        if in_terminal:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        else:
            say(line, error=True)


def _show(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    reasons = report.pop("reasons")
    if report["estimated"]:
        say("tokens are estimates: no tokenizer counted them", error=True)
    print_fields(
        {name: value for name, value in report.items() if value not in (None, 0) or name == "over_limit"}
    )
    for reason, count in reasons.items():
        say(f"{count:,} x {reason}")


def _judge(report: dict[str, Any]) -> None:
    """Raises where not everything was done."""
    missed = {
        "got no summary": report["failed"],
        "hold no conversation": report["unreadable"],
        "are no JSON objects": report["no_row"],
    }
    what = ", ".join(f"{count:,} rows {words}" for words, count in missed.items() if count)
    if not what:
        return
    trouble = f"; nothing more was asked: {report['trouble']}" if report["trouble"] else ""
    hint = f"each is told of in {report['details']}; the same command asks again for what failed"
    raise (Refused if report["out_of_budget"] else WorkFailed)(f"{what}{trouble}", hint)
