"""Changing a text: a piece of it exactly, or by a unified diff; where nothing fits, what comes nearest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice

from tools.dispatcher import ToolError

NEAR_MISSES = 3
NEAR_ENOUGH = 0.6
"""Of difflib's ratio, from 0 to 1."""
SEARCHED_LINES = 20_000
"""In a longer file no near misses are looked for."""
COMPARED = 200
"""Characters of a line; what is compared costs more than the square of them."""
COMPARED_LINES = 50
"""Those that share the most letters with the wanted line."""
LARGEST = 10_000_000
"""Characters of a text."""
HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


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
    seen = "\r\n" not in text or "\r\n" in old or ("\n" in old and old in text)
    if not seen:  # a file with DOS line ends, a caller that does not see them
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old)
    if count == 0:
        raise _not_found("old_text", text, old)
    if count > 1 and not every:
        where = ", ".join(str(line) for line in islice(_lines_of(text, old), 10))
        raise ToolError(
            "ambiguous",
            f"old_text is there {count} times, at lines {where}",
            "add lines before or after it until it is unique, or give every=true",
        )
    if len(text) + count * (len(new) - len(old)) > LARGEST:
        raise ToolError("too_large", f"the file would be larger than {LARGEST} bytes", "change less of it")
    return text.replace(old, new), count


@dataclass
class Hunk:
    """A piece of a unified diff."""

    start: int
    """Line of the old text that it begins at, from 1; 0 for an empty text."""
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Each a mark (space, - or +) and a line without its end; it has a \\r where the diff has one."""
    ends_open: tuple[bool, bool] = (False, False)
    """Whether the last line of old and of new has no line end."""

    @property
    def old(self) -> list[str]:
        return [line for mark, line in self.lines if mark != "+"]

    @property
    def new(self) -> list[str]:
        return [line for mark, line in self.lines if mark != "-"]


@dataclass
class FileDiff:
    """The hunks of a unified diff for one file."""

    name: str | None
    """Its new name; None where none is given."""
    creates: bool = False
    """Whether the file is new."""
    hunks: list[Hunk] = field(default_factory=list)


def read_diff(diff: str) -> list[FileDiff]:
    """The files of a unified diff.

    Raises:
        ToolError: It is no unified diff, or asks for what is not done here (deleting, renaming).
    """
    files: list[FileDiff] = []
    lines, at = diff.removesuffix("\n").split("\n"), 0
    if all(line.endswith("\r") for line in lines):  # the ends of the diff, not of the file
        lines = [line[:-1] for line in lines]
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            target = _name(lines[at + 1][4:])
            if target is None:
                raise ToolError("invalid_diff", "the diff deletes a file", "delete it in the terminal")
            files.append(FileDiff(target, creates=_name(line[4:]) is None))
            at += 2
        elif match := HUNK.match(line):
            if not files:
                files.append(FileDiff(None))
            at = _read_hunk(lines, at, match, files[-1].hunks)
        elif line.startswith("@@"):
            hint = "a hunk begins like: @@ -10,7 +10,8 @@"
            raise ToolError("invalid_diff", f"'{line[:80]}' begins no hunk", hint)
        elif line.startswith(("rename ", "copy ", "Binary files ", "GIT binary patch")):
            raise ToolError("invalid_diff", f"this cannot be done by patch: {line[:100]}", "use the terminal")
        else:
            at += 1  # what may stand around a diff
    if not any(file.hunks for file in files):
        raise ToolError("invalid_diff", "there is no hunk in the diff", "each begins like: @@ -10,7 +10,8 @@")
    return files


def apply_hunks(text: str, hunks: list[Hunk]) -> str:
    """The text after a diff. A hunk may have moved, but every line of it must be as it says.

    Where a hunk fits but for line ends, the file keeps its own, and new lines get those of most of its lines.

    Raises:
        ToolError: A hunk fits nowhere (with what comes nearest), or in several places.
    """
    lines, moved, after = text.split("\n"), 0, 0
    usual = "\r" if 2 * text.count("\r\n") > text.count("\n") else ""
    for number, hunk in enumerate(hunks, 1):
        old, size = hunk.old, len(hunk.old)
        wanted, exact = (max(hunk.start - 1, 0) if old else hunk.start) + moved, True
        at = _find(lines, old, hunk, wanted, after)
        if at is None:
            exact = False
            bare = [line.removesuffix("\r") for line in lines]
            at = _find(bare, [line.removesuffix("\r") for line in old], hunk, wanted, after)
        if at is None:
            raise _not_found(f"hunk {number}", text, "\n".join(old))
        there, new = iter(lines[at : at + size]), []
        for mark, line in hunk.lines:
            kept = next(there) if mark != "+" else ""
            if mark == "+" and not (exact and (old or line.endswith("\r"))):
                line = line.removesuffix("\r") + usual
            if mark != "-":
                new.append(line if mark == "+" else kept)
        last = at + size == len(lines)
        if last and hunk.ends_open == (True, False):
            new.append("")  # the diff gives the last line an end
        elif hunk.ends_open == (False, True) and lines[at + size :] == [""]:
            lines.pop()
            last = True
        if last and hunk.ends_open[1] and new:
            new[-1] = new[-1] if exact else new[-1].removesuffix("\r")
        lines[at : at + size] = new
        moved += at - wanted + len(new) - size
        after = at + len(new)
    return "\n".join(lines)


def _name(field: str) -> str | None:
    name = field.split("\t")[0].strip()
    if name == "/dev/null":
        return None
    return name[2:] if name.startswith(("a/", "b/")) else name


def _read_hunk(lines: list[str], at: int, match: re.Match[str], hunks: list[Hunk]) -> int:
    """Appends the hunk that begins at a line, and returns the line after it."""
    hunk, old, new = Hunk(int(match[1])), int(match[2] or 1), int(match[4] or 1)
    head, at, olds, news = lines[at], at + 1, 0, 0
    old_open = new_open = False
    while at < len(lines) and (olds < old or news < new or lines[at].startswith("\\")):
        mark, content = lines[at][:1], lines[at][1:]
        if mark == "\\":
            before = lines[at - 1][:1]
            old_open, new_open = old_open or before != "+", new_open or before != "-"
        elif mark in ("", " ", "-", "+") or lines[at] == "\r":
            if mark in ("", "\r"):  # an empty line whose space was lost
                mark, content = " ", lines[at]
            hunk.lines.append((mark, content))
            olds, news = olds + (mark != "+"), news + (mark != "-")
        else:
            break
        at += 1
    if (olds, news) != (old, new):
        raise ToolError(
            "invalid_diff",
            f"'{head[:80]}' says {old} old and {new} new lines, and has {olds} and {news}",
            "each line begins with a space, - or +; mend the counts",
        )
    hunk.ends_open = (old_open, new_open)
    hunks.append(hunk)
    return at


def _find(lines: list[str], old: list[str], hunk: Hunk, wanted: int, after: int) -> int | None:
    """Where a hunk fits: at its place, else at the only other place after the hunk before."""
    if not old:
        return min(wanted, len(lines))

    def fits(at: int) -> bool:
        whole = at + len(old) == len(lines) or not hunk.ends_open[0]
        return whole and lines[at : at + len(old)] == old

    if wanted >= after and fits(wanted):
        return wanted
    text, piece = "\n".join(["", *lines[after:], ""]), "\n".join(["", *old, ""])
    found = (after + line - 1 for line in _lines_of(text, piece))
    places = list(islice((at for at in found if fits(at)), 10))
    if len(places) > 1:
        where = ", ".join(str(at + 1) for at in places)
        raise ToolError("ambiguous", f"a hunk fits at lines {where}", "mend its line number, or add context")
    return places[0] if places else None


def _lines_of(text: str, piece: str) -> Iterator[int]:
    """The lines, from 1, at which a piece begins."""
    line, before, at = 1, 0, text.find(piece)
    while at >= 0:
        line += text.count("\n", before, at)
        yield line
        before, at = at, text.find(piece, at + 1)


def _not_found(what: str, text: str, piece: str) -> ToolError:
    lines, wanted = text.split("\n"), piece.split("\n")
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
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[key].strip()[:COMPARED])
    likely = []
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:COMPARED])
        if matcher.real_quick_ratio() >= NEAR_ENOUGH and (score := matcher.quick_ratio()) >= NEAR_ENOUGH:
            likely.append((score, at))
    scored = []
    for _, at in nlargest(COMPARED_LINES, likely):
        matcher.set_seq1(lines[at].strip()[:COMPARED])
        scored.append((matcher.ratio(), max(at - key, 0)))
    best = sorted((score, -at) for score, at in scored if score >= NEAR_ENOUGH)[::-1][:NEAR_MISSES]
    return sorted({min(-at, max(len(lines) - size, 0)) for _, at in best})
