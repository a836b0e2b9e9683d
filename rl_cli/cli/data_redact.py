"""`rl-cli data redact`: secrets and personal data in rows, masked or only looked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.data_options import BadLines, ForceOption, PiiOption, counted, pii_kinds
from rl_cli.cli.output import print_json, say
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.settings import home

SHOWN = 20
"""Places that are told; all of them with --json."""


def redact_command(
    input_: Annotated[
        str | None, typer.Option("--input", "-i", metavar="FILE|NAME", help="A JSONL file, or a batch.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file with the masked rows.")
    ] = None,
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="FILE|NAME", help="Only look: exit code 1 if there are any."),
    ] = None,
    pii: PiiOption = None,
    force: ForceOption = False,
    json_: JsonOption = False,
) -> None:
    """Mask secrets in the rows of a JSONL file, or find them with --check.

    Looks into every field of every line, whatever its form. --check tells the places (line, field,
    characters), never what stands there. Personal data is looked for where --pii names its kinds.
    """
    if check is not None:
        if input_ is not None or output is not None:
            raise BadUsage("--check only looks", "leave out --input and --output")
        _check(check, pii, json_)
    elif input_ is None or output is None:
        raise BadUsage("what is to be masked, and where to", "give --input and --output, or --check FILE")
    else:
        _redact(input_, output, pii, force, json_)


def _redact(given: str, output: Path, pii: str | None, force: bool, as_json: bool) -> None:
    from rl_cli.data.export.containers import JsonLines
    from rl_cli.data.export.output import new_output
    from rl_cli.data.export.source import find_source
    from rl_cli.data.hygiene.masking import Masker

    masker, bad, rows = Masker(True, pii_kinds(pii)), BadLines(), 0
    source = find_source(given, home())
    with new_output(output, folder=False, force=force) as path, JsonLines(path) as lines:
        for _, row in source.objects(bad):
            lines.write(masker.masked(row))
            rows += 1
    if as_json:
        print_json({"rows": rows, "masked": masker.counts, "bad_lines": bad.count, "output": str(output)})
    else:
        say(f"{rows} rows, masked: {counted(masker.counts) or 'nothing'}: {output}")
    bad.fail()


def _check(given: str, pii: str | None, as_json: bool) -> None:
    from rl_cli.data.export.source import find_source
    from rl_cli.data.hygiene.leaks import leaks_in

    kinds, source = pii_kinds(pii), find_source(given, home())
    counts, bad, rows = Counter[str](), BadLines(), 0
    for number, row in source.objects(bad):
        rows += 1
        for leak in leaks_in(row, kinds):
            counts[leak.kind] += 1
            if as_json:
                print_json({"line": number, **vars(leak)})
            elif counts.total() <= SHOWN:
                say(f"line {number}: {leak.kind} in {leak.place}, characters {leak.first} to {leak.end}")
    if counts.total() > SHOWN and not as_json:
        say(f"... and {counts.total() - SHOWN} more; --json lists all")
    bad.fail()
    if counts:
        raise WorkFailed(
            f"{source.name} holds {counted(counts)}",
            "rl-cli data redact --input FILE --output FILE masks them",
        )
    say(f"{rows} rows, nothing found", error=True)
