"""Changing a text: a piece of it exactly, or by a unified diff; where nothing fits, what comes nearest."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from tools.dispatcher import ToolError

NEAR_MISSES = 3
NEAR_ENOUGH = 0.6
"""Of difflib's ratio, from 0 to 1."""
SEARCHED_LINES = 20_000
"""In a longer file no near misses are looked for."""
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def replace_exactly(text: str, old: str, new: str, every: bool) -> tuple[str, int]:
    """The text with a piece replaced, and how often.

    Args:
        every: Replace it wherever it is found; else it must be found once.

    Raises:
        ToolError: It is empty, not found (with what comes nearest), or found more than once.
    """
    if not old:
        raise ToolError(
            "invalid_arguments", "old_text is empty", "give the text to replace, or use write_file"
        )
    if "\r\n" in text and "\r\n" not in old:  # a file with DOS line ends, a caller that does not see them
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old)
    if count == 0:
        raise _not_found("old_text", text, old)
    if count > 1 and not every:
        where = ", ".join(str(line) for line in _lines_of(text, old)[:10])
        raise ToolError(
            "ambiguous",
            f"old_text is there {count} times, at lines {where}",
            "add lines before or after it until it is unique, or give every=true",
        )
    return text.replace(old, new), count


@dataclass
class Hunk:
    """A piece of a unified diff."""

    start: int
    """Line of the old text that it begins at, from 1; 0 for an empty text."""
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    """Lines without their ends."""
    ends_open: tuple[bool, bool] = (False, False)
    """Whether the last line of old and of new has no line end."""


def read_diff(diff: str) -> list[tuple[str | None, list[Hunk]]]:
    """The files of a unified diff, by their new names (None where no file is named), and their hunks.

    Raises:
        ToolError: It is no unified diff, or asks for what is not done here (deleting, renaming).
    """
    files: list[tuple[str | None, list[Hunk]]] = []
    lines, at = diff.splitlines(), 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            target = _name(lines[at + 1][4:])
            if target is None:
                raise ToolError("invalid_diff", "the diff deletes a file", "delete it in the terminal")
            files.append((target, []))
            at += 2
        elif match := HUNK.match(line):
            if not files:
                files.append((None, []))
            at = _read_hunk(lines, at, match, files[-1][1])
        elif line.startswith(("rename ", "copy ", "Binary files ", "GIT binary patch")):
            raise ToolError("invalid_diff", f"this cannot be done by patch: {line[:100]}", "use the terminal")
        else:
            at += 1  # what may stand around a diff
    if not any(hunks for _, hunks in files):
        raise ToolError("invalid_diff", "there is no hunk in the diff", "each begins like: @@ -10,7 +10,8 @@")
    return files


def apply_hunks(text: str, hunks: list[Hunk]) -> str:
    """The text after a diff. A hunk may have moved, but every line of it must be as it says.

    Raises:
        ToolError: A hunk fits nowhere (with what comes nearest), or in several places.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines, moved, after = text.split(end), 0, 0
    for number, hunk in enumerate(hunks, 1):
        wanted = max(hunk.start - 1, 0) if hunk.old else hunk.start
        at = _find(lines, hunk, wanted + moved, after)
        if at is None:
            raise _not_found(f"hunk {number}", "\n".join(lines), "\n".join(hunk.old))
        new = list(hunk.new)
        if at + len(hunk.old) == len(lines) and hunk.ends_open == (True, False):
            new.append("")  # the diff gives the last line an end
        elif hunk.ends_open == (False, True) and lines[at + len(hunk.old) :] == [""]:
            lines.pop()
        lines[at : at + len(hunk.old)] = new
        moved, after = at - wanted + len(new) - len(hunk.old), at + len(new)
    return end.join(lines)


def _name(field: str) -> str | None:
    name = field.split("\t")[0].strip()
    if name == "/dev/null":
        return None
    return name[2:] if name.startswith(("a/", "b/")) else name


def _read_hunk(lines: list[str], at: int, match: re.Match[str], hunks: list[Hunk]) -> int:
    """Appends the hunk that begins at a line, and returns the line after it."""
    hunk, old, new = Hunk(int(match[1])), int(match[2] or 1), int(match[4] or 1)
    head, at = lines[at], at + 1
    old_open = new_open = False
    while at < len(lines) and (len(hunk.old) < old or len(hunk.new) < new or lines[at].startswith("\\")):
        mark, content = lines[at][:1], lines[at][1:]
        if mark == "\\":
            before = lines[at - 1][:1]
            old_open, new_open = old_open or before != "+", new_open or before != "-"
        elif mark in ("", " "):
            hunk.old.append(content)
            hunk.new.append(content)
        elif mark == "-":
            hunk.old.append(content)
        elif mark == "+":
            hunk.new.append(content)
        else:
            break
        at += 1
    if (len(hunk.old), len(hunk.new)) != (old, new):
        raise ToolError(
            "invalid_diff",
            f"'{head[:80]}' says {old} old and {new} new lines, and has {len(hunk.old)} and {len(hunk.new)}",
            "each line begins with a space, - or +; mend the counts",
        )
    hunk.ends_open = (old_open, new_open)
    hunks.append(hunk)
    return at


def _find(lines: list[str], hunk: Hunk, wanted: int, after: int) -> int | None:
    """Where a hunk fits: at its place, else at the only other place after the hunk before."""
    size = len(hunk.old)
    if not hunk.old:
        return min(wanted, len(lines))

    def fits(at: int) -> bool:
        whole = at + size == len(lines) or not hunk.ends_open[0]
        return lines[at : at + size] == hunk.old and whole

    if wanted >= after and fits(wanted):
        return wanted
    places = [at for at in range(after, len(lines) - size + 1) if lines[at] == hunk.old[0] and fits(at)]
    if len(places) > 1:
        where = ", ".join(str(at + 1) for at in places[:10])
        raise ToolError("ambiguous", f"a hunk fits at lines {where}", "mend its line number, or add context")
    return places[0] if places else None


def _lines_of(text: str, piece: str) -> list[int]:
    found, at = [], text.find(piece)
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(piece, at + len(piece))
    return found


def _not_found(what: str, text: str, piece: str) -> ToolError:
    lines, wanted = text.splitlines(), piece.splitlines()
    near = _near(lines, wanted) if len(lines) <= SEARCHED_LINES else []
    if not near:
        return ToolError(
            "not_found", f"{what} is not in the file", "read the file, and copy the text exactly"
        )
    shown = "\n".join(f"line {at + 1}:\n" + "\n".join(lines[at : at + min(len(wanted), 10)]) for at in near)
    return ToolError("not_found", f"{what} is not in the file; what comes nearest is\n{shown}",
                     "copy it exactly, with its spaces")  # fmt: skip


def _near(lines: list[str], wanted: list[str]) -> list[int]:
    """The places that look most like the wanted lines, told by the most telling one of them."""
    size, key = len(wanted), max(range(len(wanted)), key=lambda i: len(wanted[i].strip()), default=0)
    if not wanted or not wanted[key].strip():
        return []
    telling = wanted[key].strip()
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(telling)
    scored = []
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() >= NEAR_ENOUGH and matcher.quick_ratio() >= NEAR_ENOUGH:
            scored.append((matcher.ratio(), max(at - key, 0)))
    best = sorted((score, -at) for score, at in scored if score >= NEAR_ENOUGH)[::-1][:NEAR_MISSES]
    return sorted({min(-at, max(len(lines) - size, 0)) for _, at in best})
