"""`rl-cli data dedupe`: the rows of a file without those that were there before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.data_options import BadLines, ForceOption, InputOption, counted
from rl_cli.cli.output import print_json, say
from rl_cli.core.settings import home


def dedupe_command(
    input_: InputOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file with the rows that stay.")],
    near: Annotated[
        float | None,
        typer.Option(
            "--near",
            min=0.1,
            max=0.99,
            metavar="SHARE",
            help="Leave out rows too that share so much of their text with an earlier one, such as 0.85.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    json_: JsonOption = False,
) -> None:
    """Leave out rows that say what an earlier row says; the first of them stays as it is.

    Rows are compared by their messages: role, text, thinking, calls without their ids.
    """
    from rl_cli.data.errors import Unconvertible
    from rl_cli.data.export.containers import JsonLines
    from rl_cli.data.export.output import new_output
    from rl_cli.data.export.source import canonical_row, find_source
    from rl_cli.data.hygiene.duplicates import Duplicates

    duplicates, bad, kept = Duplicates(near), BadLines(), 0
    source = find_source(input_, home())
    with new_output(output, folder=False, force=force) as path, JsonLines(path) as lines:
        for number, row in source.objects(bad):
            try:
                messages = canonical_row(row)["messages"]
            except Unconvertible as reason:
                bad(number, str(reason))
                continue
            if duplicates.is_new(messages):
                lines.write(row)
                kept += 1
    if json_:
        counts = {"exact": duplicates.counts["exact"], "near": duplicates.counts["near"]}
        print_json({"kept": kept, "duplicates": counts, "bad_lines": bad.count, "output": str(output)})
    else:
        say(f"{kept} rows stay, left out: {counted(duplicates.counts) or 'none'}: {output}")
    bad.fail()
