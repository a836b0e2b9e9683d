"""`rl-cli sessions list|show|export`: the conversations that were held."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.app import JsonOption, group
from rl_cli.cli.output import print_json_lines, print_table, say
from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import home

if TYPE_CHECKING:
    from rl_cli.agent.session_store import SessionInfo

app = group("Conversations with the assistant: list, read and export them.")

SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="Its id, a unique beginning of it, or 'latest'.")
]


class Format(StrEnum):
    jsonl = "jsonl"
    md = "md"


@app.command("list")
def list_command(
    json_: JsonOption = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Only the newest so many.")
    ] = None,
) -> None:
    """List the sessions, the one that was changed last first."""
    from rl_cli.agent.session_store import list_sessions
    from rl_cli.core.cuts import one_line
    from rl_cli.runs.times import local_text, local_zone

    found = list_sessions(home(), limit)
    if json_:
        print_json_lines(_row(info) for info in found)
        return
    rows = [
        [info.id, info.turns, info.model, local_text(info.changed), one_line(info.title, 60)]
        for info in found
    ]
    columns = ["session", "turns", "model", f"last used ({local_zone()})", "first request"]
    print_table(columns, rows, empty="no sessions yet: rl-cli chat")


@app.command("show")
def show_command(session: SessionArgument, json_: JsonOption = False) -> None:
    """Show a conversation as it went; with --json, the events of its file."""
    from rl_cli.agent.session_file import read_events
    from rl_cli.agent.session_store import find_session
    from rl_cli.cli.session_text import as_text

    events = read_events(find_session(home(), session))
    if json_:
        print_json_lines(events)
        return
    for line in as_text(events):
        say(line)


@app.command("export")
def export_command(
    sessions: Annotated[
        list[str], typer.Argument(metavar="SESSION...", help="As for show; several may be given.")
    ],
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="jsonl: a row with all messages for each session; md: to read. Default: as --output ends.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; else standard output.")
    ] = None,
) -> None:
    """Export conversations: every message since the beginning, each call with its result."""
    from rl_cli.agent.session_store import find_session
    from rl_cli.cli.session_text import as_markdown, as_row
    from rl_cli.core.files import write_atomic
    from rl_cli.core.json_text import to_json
    from rl_cli.core.printable import printable, printable_json
    from rl_cli.core.redaction import redact_text

    paths = [find_session(home(), name) for name in sessions]
    if output and output.is_dir():
        raise BadUsage(f"{output} is a folder", "--output names a file")
    if (format_ or _format_of(output)) is Format.md:
        text = printable("\n".join(as_markdown(path) for path in paths))
    else:
        text = redact_text("".join(to_json(as_row(path)) + "\n" for path in paths))
    if output is None:
        sys.stdout.write(printable_json(text) if format_ is Format.jsonl else text)
    else:
        write_atomic(output.resolve(), text)
        print(f"{len(paths)} session{'s' if len(paths) > 1 else ''}: {output}", file=sys.stderr)


def _format_of(output: Path | None) -> Format:
    return Format.jsonl if output and output.suffix.lower() in (".jsonl", ".json") else Format.md


def _row(info: SessionInfo) -> dict[str, object]:
    return {
        "id": info.id,
        "model": info.model,
        "started": info.started,
        "changed": info.changed,
        "turns": info.turns,
        "title": info.title,
        "path": str(info.path),
    }
