"""Tools: reading, writing and changing files, in the task's sandbox or in allowed folders of the host."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Protocol

from tools.dispatcher import CallContext, Estimate, ToolError, tool
from tools.everyday.host_paths import HostFiles
from tools.everyday.task_sandbox import FILE_TOOLS, confinement, sandbox_of, tool_errors
from tools.everyday.text_edits import LARGEST, FileDiff, apply_hunks, read_diff, replace_exactly
from tools.sandboxes.base import FileProblem

LOOKED_AT = 8192
"""Bytes at the beginning of a file that tell whether it is binary: text has no NUL."""
DEFAULT_LINES = 500


class Files(Protocol):
    """Where the file tools act: a sandbox, or HostFiles."""

    async def read_bytes(self, path: str, limit: int | None = None) -> bytes: ...

    async def write_bytes(self, path: str, data: bytes, mode: int | None = None) -> None: ...


def _change(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What of a file of the host would be changed."""
    estimate = confinement(context, arguments)
    if not context.file_roots:
        return estimate
    what, path = "", str(arguments.get("path") or "")
    if path:
        there = HostFiles.of(context).locate(path)
        size = there.stat().st_size if there.is_file() else None
        does = "replaces" if arguments.get("content") is not None else "changes"
        what = "makes a new file" if size is None else f"{does} a file of {size} bytes"
    return replace(estimate, where="this computer", what=what)


async def files_of(context: CallContext) -> Files:
    """Where a call's files are.

    Raises:
        ToolError: As `sandbox_of`.
    """
    if context.file_roots:
        return HostFiles.of(context)
    return await sandbox_of(context)


@tool(toolset="files")
async def read_file(
    path: str, context: CallContext, start_line: int = 1, lines: int = DEFAULT_LINES
) -> dict[str, Any]:
    """Reads lines of a text file. Says of a binary file only that it is one, and its size.

    Args:
        path: Relative to the working folder, or absolute.
        start_line: The first line to read, from 1.
        lines: How many.
    """
    if start_line < 1 or lines < 1:
        raise ToolError("invalid_arguments", "start_line and lines are at least 1")
    files = await files_of(context)
    with tool_errors():
        data = await files.read_bytes(path, LARGEST + 1)
    return await asyncio.to_thread(_window, path, data, start_line, lines)


def _window(path: str, data: bytes, start_line: int, lines: int) -> dict[str, Any]:
    """Some lines of a file of which at most LARGEST + 1 bytes were read."""
    whole = len(data) <= LARGEST
    told: dict[str, Any] = {"path": path, "size": len(data) if whole else f"more than {LARGEST}"}
    if b"\0" in data[:LOOKED_AT]:
        return {**told, "binary": True}
    rows = [f"{row}\n" for row in data[:LARGEST].decode("utf-8", errors="replace").split("\n")]
    rows[-1] = rows[-1][:-1]  # nothing follows the last one
    if not rows[-1]:
        rows.pop()
    window = rows[start_line - 1 : start_line - 1 + lines]
    told |= {
        "lines": len(rows) if whole else f"more than {len(rows)}",
        "start_line": start_line,
        "end_line": start_line + len(window) - 1,
        "content": "".join(window),
    }
    if start_line > len(rows) > 0:
        told["hint"] = f"the file ends at line {len(rows)}"
    elif told["end_line"] < len(rows):
        told["hint"] = f"more lines follow: go on with start_line={told['end_line'] + 1}"
    if not whole:
        told["hint"] = "the file is too large for this tool beyond what it shows: use the terminal"
    return told


@tool(toolset="files", risk="write", estimate=_change, covers=FILE_TOOLS)
async def write_file(path: str, content: str, context: CallContext) -> dict[str, Any]:
    """Writes a text file whole, over what was there; makes the folders on the way.

    Args:
        path: Relative to the working folder, or absolute.
        content: All of its new text.
    """
    files, data = await files_of(context), content.encode("utf-8", errors="replace")
    with tool_errors():
        await files.write_bytes(path, data)
    return {"path": path, "size": len(data)}


@tool(toolset="files", risk="write", exclusive=True, estimate=_change, covers=FILE_TOOLS)
async def patch(
    context: CallContext,
    path: str = "",
    old_text: str = "",
    new_text: str = "",
    every: bool = False,
    diff: str = "",
) -> dict[str, Any]:
    """Changes text files: one piece exactly, or several by a unified diff. What does not fit changes nothing.

    Args:
        path: The file. With a diff that names its files, not needed.
        old_text: The piece to replace, exactly as it is in the file, with all spaces; it must be there once.
        new_text: What takes its place.
        every: Replace the piece wherever it is.
        diff: A unified diff, instead of old_text and new_text.
    """
    files = await files_of(context)
    if not diff:
        if not path:
            raise ToolError("invalid_arguments", "patch needs a path")
        if not old_text:
            raise ToolError("invalid_arguments", "patch needs old_text and new_text, or a diff")
        before = await _text(files, path)
        after, count = await asyncio.to_thread(replace_exactly, before, old_text, new_text, every)
        await _write(files, path, after)
        return {"path": path, "replaced": count}
    if old_text or new_text:
        raise ToolError("invalid_arguments", "give either a diff, or old_text and new_text")
    parts: list[tuple[str, FileDiff]] = []
    for each in await asyncio.to_thread(read_diff, diff):
        if not (target := path or each.name):
            raise ToolError("invalid_arguments", "the diff names no file", "give path, or --- and +++ lines")
        parts.append((str(PurePosixPath(target)), each))
    changed: dict[str, str] = {}
    for target, each in parts:
        before = changed[target] if target in changed else await _before(files, target, each)
        changed[target] = await asyncio.to_thread(apply_hunks, before, each.hunks)
    if len(changed) == 1:
        await _write(files, *changed.popitem())
        return {"paths": [target]}
    for target, each in parts:  # all of it fits; two names may lead to one file, which is then changed twice
        now = await _text(files, target, missing=True)
        await _write(files, target, await asyncio.to_thread(apply_hunks, now, each.hunks))
    return {"paths": list(changed)}


async def _before(files: Files, path: str, diff: FileDiff) -> str:
    """The text that a diff is about."""
    before = await _text(files, path, missing=diff.creates or all(not hunk.old for hunk in diff.hunks))
    if diff.creates and before:
        hint = "give a diff against it, or use write_file"
        raise ToolError("exists", f"the diff makes {path}, which is there", hint)
    return before


async def _text(files: Files, path: str, missing: bool = False) -> str:
    """A file's text; "" for one that may be missing and is."""
    with tool_errors():
        try:
            data = await files.read_bytes(path, LARGEST + 1)
        except FileProblem as problem:
            if missing and problem.kind == "missing":
                return ""
            raise
    if len(data) > LARGEST:
        raise ToolError("too_large", f"{path} is larger than {LARGEST} bytes", "change it in the terminal")
    try:
        if b"\0" in data[:LOOKED_AT]:
            raise ToolError("binary", f"{path} is binary", "change it in the terminal")
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError("binary", f"{path} is no UTF-8 text", "change it in the terminal") from error


async def _write(files: Files, path: str, text: str) -> None:
    with tool_errors():
        await files.write_bytes(path, text.encode())
