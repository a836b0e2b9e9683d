"""`rl-cli data export-sessions`: conversations with the assistant as rows of training data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.data_options import ForceOption, PiiOption, counted, pii_kinds
from rl_cli.cli.output import print_json, say
from rl_cli.core.settings import home


def export_sessions_command(
    sessions: Annotated[
        list[str], typer.Argument(metavar="SESSION...", help="Ids, beginnings of ids, or 'latest'.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The JSONL file with a row for each.")],
    pii: PiiOption = None,
    force: ForceOption = False,
    json_: JsonOption = False,
) -> None:
    """Make rows of conversations with the assistant: only of those that are named here.

    Secrets are masked and counted. The rows are canonical, as a batch's: rl-cli data export takes the file.
    """
    from rl_cli.agent.assistant import TOOLSETS
    from rl_cli.agent.session_store import find_session
    from rl_cli.data.export.containers import JsonLines
    from rl_cli.data.export.output import new_output
    from rl_cli.data.export.session_rows import session_row
    from rl_cli.data.hygiene.masking import Masker

    masker = Masker(True, pii_kinds(pii))
    paths = list(dict.fromkeys(find_session(home(), name) for name in sessions))
    with new_output(output, folder=False, force=force) as path, JsonLines(path) as lines:
        for session in paths:
            lines.write(masker.masked({**session_row(session, TOOLSETS)}))
    if json_:
        print_json({"rows": len(paths), "masked": masker.counts, "output": str(output)})
    else:
        masked = f", masked: {counted(masker.counts)}" if masker.counts else ""
        say(f"{len(paths)} session{'s' if len(paths) > 1 else ''}{masked}: {output}")
