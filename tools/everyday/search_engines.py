"""The three ways to search in a sandbox, each a script of `sh`, and how their output is read."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

NOT_THERE = 66
"""Exit code where the path does not exist."""

RIPGREP = 'exec rg --no-config --no-ignore --hidden --no-follow --sort path {options} -- "$THIS"'
PYTHON = 'exec python3 -I -S -c "$PROGRAM" "$THIS"'
GREP = "exec find \"$THIS\" -name .git -prune -o -type f -exec sh -c 'for f; do {each}; done' sh {{}} +"
LINES_OF_RIPGREP = '--json $CASE -e "$PATTERN"'
NAMES_OF_RIPGREP = "--files"
LINES_OF_GREP = (
    'if grep -qE $AS_TEXT $CASE -e "$ERE" -- "$f" 2>/dev/null'
    r' && [ "$(tr -d "\\000" <"$f" | wc -c)" -eq "$(wc -c <"$f")" ]; then '
    r'printf "%s\\000" "$f"; grep -nE $AS_TEXT $CASE -e "$ERE" -- "$f"; printf "\\000"; fi'
)
NAMES_OF_GREP = r'printf "%s\\000\\000" "$f"'
CHOICE = """\
if [ -d "$WHERE" ]; then
    cd -- "$WHERE" || exit 1
    KIND=folder THIS=./
elif [ -e "$WHERE" ]; then
    KIND=file THIS=./$(basename -- "$WHERE")
    cd -- "$(dirname -- "$WHERE")" || exit 1
else
    exit 66
fi
if command -v rg >/dev/null; then echo "rg $KIND"; {ripgrep}
elif command -v python3 >/dev/null; then echo "python $KIND"; {python}
else
    echo "grep $KIND"
    export AS_TEXT=-a
    echo | grep -qa "" 2>/dev/null || AS_TEXT=
    {grep}
fi
"""


@dataclass(frozen=True)
class Match:
    path: str
    """From where the search began."""
    line: int
    """From 1; 0 where only names were asked for."""
    text: str


def script(names_only: bool, globs: int) -> str:
    """A search by the first engine there is; its first line of output says which, and "folder" or "file".

    It takes from its environment WHERE (a folder or file), PATTERN, ERE (the same for grep), CASE ("-i" or
    nothing), GLOB0 and so on, PROGRAM (of Python), and for Python a JSON object on standard input.
    """
    wanted = "".join(f'-g "$GLOB{i}" ' for i in range(globs)) + "-g '!.git' "
    options = wanted + (NAMES_OF_RIPGREP if names_only else LINES_OF_RIPGREP)
    each = NAMES_OF_GREP if names_only else LINES_OF_GREP
    return CHOICE.format(ripgrep=RIPGREP.format(options=options), python=PYTHON, grep=GREP.format(each=each))


def of_ripgrep(out: bytes) -> Iterator[Match]:
    """From `rg --json`: the matches of files that turned out to be text to their end."""
    pending: list[Match] = []
    for line in out.splitlines():
        try:
            event = json.loads(line)
        except ValueError:  # where too much output was cut
            continue
        data = event["data"]
        if event["type"] == "begin":
            pending = []
        elif event["type"] == "match":
            name = _text(data["path"]).removeprefix("./")
            pending.append(Match(name, data["line_number"], _text(data["lines"]).rstrip("\n")))
        elif event["type"] == "end" and data["binary_offset"] is None:
            yield from pending


def of_python(out: bytes) -> Iterator[Match]:
    for line in out.splitlines():
        try:
            yield Match(*json.loads(line))
        except ValueError:  # where too much output was cut
            continue


def of_grep(out: bytes) -> Iterator[Match]:
    parts = out.split(b"\0")
    for name, found in zip(parts[::2], parts[1::2], strict=False):
        path = name.decode("utf-8", "replace").removeprefix("./")
        for line in found.splitlines():
            number, _, text = line.partition(b":")
            if number.isdigit():
                yield Match(path, int(number), text.decode("utf-8", "replace"))


def names_of_ripgrep(out: bytes) -> Iterator[Match]:
    for line in out.decode("utf-8", "replace").splitlines():
        yield Match(line.removeprefix("./"), 0, "")


def names_of_grep(out: bytes) -> Iterator[Match]:
    for name in out.split(b"\0\0")[:-1]:
        yield Match(name.decode("utf-8", "replace").removeprefix("./"), 0, "")


Reader = Callable[[bytes], Iterator[Match]]
LINE_READERS: Mapping[str, Reader] = MappingProxyType(
    {"rg": of_ripgrep, "python": of_python, "grep": of_grep}
)
NAME_READERS: Mapping[str, Reader] = MappingProxyType(
    {"rg": names_of_ripgrep, "python": of_python, "grep": names_of_grep}
)


def _text(field: dict[str, str]) -> str:
    """ripgrep gives what is no UTF-8 as base64."""
    return field["text"] if "text" in field else base64.b64decode(field["bytes"]).decode("utf-8", "replace")
