"""`rl-cli data export`: canonical rows as what trainers, data sets and viewers read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.data_options import BadLines, ForceOption, InputOption, PiiOption, counted, pii_kinds
from rl_cli.cli.output import print_json, say
from rl_cli.core.settings import home

if TYPE_CHECKING:
    from rl_cli.data.export.exporting import Report


class FormatName(StrEnum):
    trl = "trl"
    sharegpt = "sharegpt"
    parquet = "parquet"
    hf = "hf"
    atif = "atif"


class Dedupe(StrEnum):
    exact = "exact"
    near = "near"


def export_command(
    input_: InputOption,
    format_: Annotated[FormatName, typer.Option("--format", help="What to make of the rows.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Ends in .parquet or .jsonl for a file of that form; else a folder."
        ),
    ],
    dedupe: Annotated[
        Dedupe | None,
        typer.Option("--dedupe", help="Leave out rows that are equal, or nearly so (0.85), to earlier ones."),
    ] = None,
    pii: PiiOption = None,
    no_redact: Annotated[
        bool, typer.Option("--no-redact", help="Do not mask secrets: texts go out as they are.")
    ] = False,
    force: ForceOption = False,
    json_: JsonOption = False,
) -> None:
    """Export rows for training: TRL, ShareGPT, Parquet, a Hugging Face data set, ATIF.

    trl: messages and tools, arguments as objects. sharegpt: from/value turns. parquet: the canonical rows,
    one file. hf: the same, a folder for datasets.load_dataset. atif: Harbor's trajectories. Secrets are
    masked and counted. A row that the format cannot say is left out and counted; a line that is no row is
    reported with its number, and the exit code is then 1. The output is there whole or not at all.
    """
    from rl_cli.data.export.exporting import export
    from rl_cli.data.export.source import find_source
    from rl_cli.data.hygiene.duplicates import NEAR, Duplicates
    from rl_cli.data.hygiene.masking import Masker

    bad = BadLines()
    report = export(
        find_source(input_, home()),
        format_.value,
        output,
        Masker(not no_redact, pii_kinds(pii)),
        Duplicates(NEAR if dedupe is Dedupe.near else None) if dedupe else None,
        bad,
        force,
    )
    if json_:
        print_json(report.to_dict())
    else:
        _print_report(report)
    bad.fail()


def _print_report(report: Report) -> None:
    say(f"{report.written} of {report.read} rows: {report.output}")
    for why, count in report.left_out.most_common():
        say(f"left out: {count}: {why}")
    if report.duplicates:
        say(f"left out as duplicates: {counted(report.duplicates)}")
    if report.masked:
        say(f"masked: {counted(report.masked)}")
