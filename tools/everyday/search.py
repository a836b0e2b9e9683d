"""Tool: finding lines in files, by ripgrep where the sandbox has it, else Python or grep: the same lines."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from tools.dispatcher import CallContext, ToolError, tool
from tools.everyday.host_paths import HostFiles
from tools.everyday.search_engines import LINE_READERS, NAME_READERS, NOT_THERE, Match, of_python, script
from tools.everyday.search_patterns import common_pattern, expand_globs, glob_regex, grep_pattern
from tools.everyday.task_sandbox import sandbox_of, tool_errors
from tools.sandboxes.base import Sandbox

SCRIPT = Path(__file__).with_name("search_script.py")
FITTING = """\
import json, re, sys
globs, paths = json.load(sys.stdin)
globs = [re.compile(glob) for glob in globs]
json.dump([path for path in paths if any(glob.fullmatch(path) for glob in globs)], sys.stdout)
"""
"""A program that picks the paths that fit a glob."""
SECONDS = 120.0
OUTPUT_BYTES = 8_000_000
"""That a search prints; beyond that some of it is lost, and the result says that there is more."""
MOST_RESULTS = 1000
LONGEST_LINE = 500
"""Characters of a matching line that are shown."""


@tool(toolset="files", deadline=SECONDS + 600)
async def search_files(
    context: CallContext,
    pattern: str = "",
    path: str = ".",
    glob: str = "",
    ignore_case: bool = False,
    max_results: int = 100,
) -> dict[str, Any]:
    """Finds lines of text files by a regular expression, or files by their names.

    Hidden and ignored files count too; .git, binary files and what links lead to do not.

    Args:
        pattern: A regular expression for one line; empty to list files.
        path: The folder or file to search.
        glob: Which files, such as *.py or src/**/*.{js,ts}; empty for all.
        ignore_case: Whether A and a are the same.
        max_results: How many, at most 1000; the result says whether there are more.
    """
    if not 1 <= max_results <= MOST_RESULTS:
        raise ToolError("invalid_arguments", f"max_results is from 1 to {MOST_RESULTS}")
    globs, names_only = expand_globs(glob), not pattern
    pattern = common_pattern(pattern)
    asked = {
        "pattern": pattern,
        "globs": [glob_regex(each) for each in globs],
        "ignore_case": ignore_case,
        "names_only": names_only,
        "limit": max_results + 1,
    }
    if context.file_roots:
        matches, whole_path, cut = await _on_host(HostFiles.of(context), path, asked)
    else:
        matches, whole_path, cut = await _in_sandbox(await sandbox_of(context), path, asked, globs)
    matches.sort(key=lambda match: (match.path.encode("utf-8", "replace").split(b"/"), match.line))
    more = cut or len(matches) > max_results
    matches = matches[:max_results]
    before = "" if path in ("", ".", "./") else path.rstrip("/") + "/"
    paths = [path if whole_path else before + match.path for match in matches]
    if names_only:
        return {"files": paths, "more": more}
    found = [
        {"path": shown, "line": m.line, "text": m.text.rstrip("\r")[:LONGEST_LINE]}
        for shown, m in zip(paths, matches, strict=True)
    ]
    return {"matches": found, "more": more}


Found = tuple[list[Match], bool, bool]
"""What was found, whether the path is one file, and whether some of it was lost."""


async def _on_host(files: HostFiles, path: str, asked: dict[str, Any]) -> Found:
    with tool_errors():
        start = files.open(path)
    try:
        out = await _child([str(SCRIPT), path], {**asked, "descriptor": start}, start)
        return list(of_python(out)), not stat.S_ISDIR(os.fstat(start).st_mode), False
    finally:
        os.close(start)


async def _child(arguments: list[str], given: Any, *descriptors: int) -> bytes:
    """What a Python program prints, which is given some JSON: a regular expression may take for ever."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", *arguments),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env={},
        pass_fds=descriptors,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, said = await child.communicate(json.dumps(given).encode())
    except TimeoutError:
        raise _too_slow() from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise ToolError("failed", f"the search failed: {said.decode('utf-8', 'replace')[-500:]}")
    return out


async def _in_sandbox(sandbox: Sandbox, path: str, asked: dict[str, Any], globs: list[str]) -> Found:
    names_only, unknown = asked["names_only"], None
    env = {"WHERE": path, "PATTERN": asked["pattern"], "CASE": "-i" if asked["ignore_case"] else ""}
    env |= {"PROGRAM": SCRIPT.read_text("utf-8"), "LC_ALL": "C.UTF-8"}
    env |= {f"GLOB{i}": glob for i, glob in enumerate(globs)}
    try:
        env["ERE"] = grep_pattern(asked["pattern"])
    except ToolError as problem:  # matters only where there is nothing but grep
        unknown = problem
    with tool_errors():
        result = await sandbox.run(
            script(names_only, len(globs)),
            SECONDS,
            env=env,
            stdin=json.dumps(asked).encode(),
            output_limit=OUTPUT_BYTES,
        )
    if result.timed_out:
        raise _too_slow()
    if result.exit_code == NOT_THERE:
        raise ToolError("missing", f"there is no {path}")
    head, _, out = result.stdout.data.partition(b"\n")
    engine, _, kind_of_path = head.decode().partition(" ")
    said = result.stderr.text.strip()
    if engine == "grep" and unknown:
        raise unknown
    readers = NAME_READERS if names_only else LINE_READERS
    # It may be long, and the event loop has others to serve.
    matches = await asyncio.to_thread(list, readers[engine](out)) if engine in readers else []
    if not matches and said and result.exit_code not in (0, 1):
        kind = "invalid_pattern" if "regex" in said else "failed"
        raise ToolError(kind, f"the search failed: {said[:500]}")
    if engine == "grep" and globs:
        paths = sorted({match.path for match in matches})
        fitting = set(json.loads(await _child(["-c", FITTING], [asked["globs"], paths])))
        matches = [match for match in matches if match.path in fitting]
    return matches, kind_of_path == "file", result.stdout.truncated


def _too_slow() -> ToolError:
    hint = "search a smaller folder, or give a glob"
    return ToolError("timeout", f"the search took longer than {SECONDS:g} seconds", hint)
