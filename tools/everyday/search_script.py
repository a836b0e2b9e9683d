"""The search itself, where there is no ripgrep: a program of its own that needs only Python 3.6.

Run as `python3 -I -S -c SOURCE PATH`, in a sandbox or on this computer, with a JSON object on standard input;
prints one JSON list [path, line number, text] per match, sorted by path. Links are not followed.
"""

import json
import os
import re
import stat
import sys
from typing import Iterator, Tuple  # noqa: UP035 (Python 3.6)


def main() -> None:
    asked = json.load(sys.stdin)
    pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    globs = [re.compile(glob) for glob in asked["globs"]]
    left = asked["limit"]
    for path, name in found(sys.argv[-1], ""):
        if globs and not any(glob.fullmatch(name) for glob in globs):
            continue
        lines = [(0, "")] if asked["names_only"] else matches(path, pattern)
        for number, text in lines:
            if left == 0:
                return
            left -= 1
            print(json.dumps([name, number, text]))


def found(path: str, name: str) -> Iterator[Tuple[str, str]]:  # noqa: UP006
    """The files below a path, sorted, each with its name from there."""
    if not os.path.isdir(path):
        yield path, os.path.basename(path)
        return
    with os.scandir(path) as listing:
        entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        inner = name + "/" + entry.name if name else entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    yield from found(entry.path, inner)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path, inner
        except PermissionError:  # what cannot be read holds nothing to be found
            pass


def matches(path: str, pattern: "re.Pattern[str]") -> Iterator[Tuple[int, str]]:  # noqa: UP006
    """Matching lines, numbered from 1; none of what cannot be read or is binary."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return
    if b"\0" in data:
        return
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "replace")
        if pattern.search(text):
            yield number, text[:2000]


main()
