"""The search itself, where there is no ripgrep: a program of its own that needs only Python 3.6.

Run as `python3 -I -S -c SOURCE PATH`, in a sandbox or on this computer, with a JSON object on standard input;
prints one JSON list [path, line number, text] per match, sorted by path. Links are not followed: each folder
is opened from the one around it. "descriptor" in the object: PATH, opened already.
"""

import json
import os
import re
import stat
import sys
from typing import Iterator, List, Tuple  # noqa: UP035 (Python 3.6)

NO_LINK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def main() -> None:
    asked, path = json.load(sys.stdin), sys.argv[-1]
    pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    globs = [re.compile(glob) for glob in asked["globs"]]
    left = asked["limit"]
    start = asked.get("descriptor")
    if start is None:
        start = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    for folder, entry, name in found(start, os.path.basename(path)):
        if globs and not any(glob.fullmatch(name) for glob in globs):
            continue
        lines = [(0, "")] if asked["names_only"] else matches(folder, entry, pattern)
        for number, text in lines:
            if left == 0:
                return
            left -= 1
            print(json.dumps([name, number, text]))


def found(start: int, name: str) -> Iterator[Tuple[int, str, str]]:  # noqa: UP006
    """The files below an open folder, sorted: the folder that each is in, its name there, its whole name.

    What is no folder is itself found, with an empty name there.
    """
    if not stat.S_ISDIR(os.fstat(start).st_mode):
        yield start, "", name
        return
    inside = [(start, "", listed(start))]
    while inside:
        folder, before, entries = inside[-1]
        if not entries:
            os.close(folder)
            inside.pop()
            continue
        entry = entries.pop()
        try:
            kind = stat.S_IFMT(os.lstat(entry, dir_fd=folder).st_mode)
            if kind == stat.S_IFREG:
                yield folder, entry, before + entry
            elif kind == stat.S_IFDIR and entry != ".git":
                inner = os.open(entry, NO_LINK | os.O_DIRECTORY, dir_fd=folder)
                inside.append((inner, before + entry + "/", listed(inner)))
        except OSError:  # what is gone, cannot be read, or lies too deep holds nothing to be found
            pass


def listed(folder: int) -> List[str]:  # noqa: UP006
    """The last one first."""
    return sorted(os.listdir(folder), key=os.fsencode, reverse=True)


def matches(folder: int, entry: str, pattern: "re.Pattern[str]") -> Iterator[Tuple[int, str]]:  # noqa: UP006
    """Matching lines, numbered from 1; none of what cannot be read or is binary."""
    try:
        descriptor = os.open(entry, NO_LINK, dir_fd=folder) if entry else folder
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
