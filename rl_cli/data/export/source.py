"""The rows of a JSONL file or of a batch, one at a time, in canonical form; bad lines are told of."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.files import explain_os_error, open_regular
from rl_cli.core.handwritten import short
from rl_cli.data.canonical import canonical
from rl_cli.data.errors import Unconvertible
from rl_cli.data.strict_json import refuse, repair_escapes, too_deep
from rl_cli.data.trajectory import from_conversations, tool_schemas

LONGEST_LINE = 64 * 2**20
"""Bytes. A longer line is passed over unread: a line of text takes five times its length of memory."""
DEEPEST_LINE = 128
"""Levels of nesting: what walks through a row calls itself for each."""
MERGED = "trajectories.jsonl"
"""What a merge makes of a batch."""

OnBadLine = Callable[[int, str], None]
"""Told the number of a line, from 1, and why it is left out."""


@dataclass(frozen=True)
class Source:
    """Where rows come from."""

    path: Path
    name: str
    """The batch's name, or the file's."""

    def rows(self, on_bad: OnBadLine) -> Iterator[dict[str, Any]]:
        """The rows in the file's order, messages and tools in canonical form, in constant memory.

        A row of the from/value form is taken too. A line that is no row goes to `on_bad`; reading goes on.

        Raises:
            RlCliError: The file cannot be read.
        """
        for number, line in self._lines():
            try:
                yield canonical_row(_object(line))
            except Unconvertible as reason:
                on_bad(number, str(reason))

    def objects(self, on_bad: OnBadLine) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number of the line, its object) as it stands in the file; else as `rows`."""
        for number, line in self._lines():
            try:
                yield number, _object(line)
            except Unconvertible as reason:
                on_bad(number, str(reason))

    def _lines(self) -> Iterator[tuple[int, bytes | None]]:
        try:
            with open_regular(self.path) as file:
                yield from _numbered(file)
        except OSError as error:
            raise explain_os_error(error, self.path) from error


def find_source(given: str, home: Path) -> Source:
    """The file of that path, else the merged rows of the batch of that name.

    Args:
        given: A path or a name; a path with a slash is never a name.
        home: RL_CLI_HOME.

    Raises:
        BadUsage: There is neither, or the batch is not merged yet.
    """
    path = Path(os.path.expanduser(given))
    try:
        if path.is_file():
            return Source(path, path.name)
    except OSError as error:  # a name that is too long, a folder that is closed
        raise explain_os_error(error, short(given, 100)) from error
    batch = home / "batches" / given
    if given not in ("", ".", "..") and "/" not in given and batch.is_dir():
        merged = batch / MERGED
        if not merged.is_file():
            raise BadUsage(f"the batch '{given}' has no rows yet", f"rl-cli data merge {given}")
        return Source(merged, given)
    if path.is_dir():
        raise BadUsage(f"{path} is a folder", f"name a JSONL file, such as {path / MERGED}, or a batch")
    names = sorted(entry.name for entry in (home / "batches").glob("*") if entry.is_dir())
    hint = did_you_mean(given, names) if names else "there are no batches yet"
    raise BadUsage(f"there is neither a file nor a batch '{short(given, 100)}'", hint)


def canonical_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row with messages and tools in canonical form; its other fields stay.

    Raises:
        Unconvertible: It holds no conversation.
    """
    if "messages" not in row and "conversations" in row:
        tools, messages = from_conversations(row["conversations"], row.get("system_messages"))
        others = {k: v for k, v in row.items() if k not in ("conversations", "system_messages")}
        return {**others, "messages": messages, "tools": tools}
    return {
        **row,
        "messages": canonical(row.get("messages")).messages,
        "tools": tool_schemas(row.get("tools")),
    }


def _numbered(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers; None for one that is too long."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
        while not line.endswith(b"\n") and (rest := file.readline(2**16)):
            line = rest
        if not whole or line.strip():
            yield number, line if whole else None


def _object(line: bytes | None) -> dict[str, Any]:
    if line is None:
        raise Unconvertible(f"longer than {LONGEST_LINE // 2**20} MiB, and passed over")
    try:
        text = repair_escapes(line.removeprefix(codecs.BOM_UTF8).decode())
        deep = too_deep(text, DEEPEST_LINE)
        value = None if deep else json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise Unconvertible(f"not JSON: {error}") from error
    if deep:
        raise Unconvertible(f"nested more than {DEEPEST_LINE} levels deep")
    if not isinstance(value, dict):
        raise Unconvertible("not a JSON object")
    return value
