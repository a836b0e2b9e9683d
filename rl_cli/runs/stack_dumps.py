"""Dumps of Python's fault handler, turned round so that their end says where a process hangs or died.

The fault handler writes the error first, then each thread from its innermost frame outwards.
"""

from __future__ import annotations

import re

_ERROR = "Fatal Python error: "
_CURRENT = "Current thread"
_THREAD = re.compile(r"(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):")
_MODULES = "Extension modules: "


def in_traceback_order(lines: list[str]) -> list[str]:
    """The lines, each dump in them as a traceback has it.

    The thread that it is about comes last, its innermost frame after the others, the error after that.
    """
    told, i = list[str](), 0
    while i < len(lines):
        error = lines[i : i + 1] if lines[i].startswith(_ERROR) else []
        stacks, end = _stacks(lines, i + len(error))
        if not stacks:
            told.append(lines[i])
            i += 1
            continue
        for head, *frames in sorted(stacks, key=lambda stack: stack[0].startswith(_CURRENT)):
            told += [head.replace("recent call first", "recent call last"), *reversed(frames)]
        told += error
        i = end
    return told


def _stacks(lines: list[str], start: int) -> tuple[list[list[str]], int]:
    """The threads of a dump, each with its frames, and where the dump ends; none where there is no dump."""
    stacks = list[list[str]]()
    end = start
    while end < len(lines):
        if _THREAD.fullmatch(lines[end]):
            stacks.append([lines[end]])
        elif stacks and lines[end].startswith("  "):
            stacks[-1].append(lines[end])
        else:
            break
        end += 1
    is_told = end < len(lines) and lines[end].startswith(_MODULES)
    return stacks, end + 1 if stacks and is_told else end
