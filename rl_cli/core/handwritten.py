"""Files that people write, read with bounds: regular files of at most 1 MB, YAML without anchors or depth.

A file of a few lines must not hang a command or fill the memory: a device and a pipe have no end, and aliases
of aliases make a few hundred bytes of YAML into billions of values.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error
from rl_cli.core.printable import printable

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
"""Of nested lists and mappings."""


def read_bytes(path: Path) -> bytes:
    """The content of a file that a person wrote.

    Raises:
        BadUsage: It is missing, not a regular file, or too big.
        RlCliError: As explain_os_error() says.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BadUsage(f"{path} is {'a folder' if path.is_dir() else 'a device or a pipe'}, not a file")
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise explain_os_error(error, path) from error
    except ValueError as error:  # a NUL in the path
        raise BadUsage(f"there is no file {short(str(path))}: {error}") from error
    if len(content) > MAX_BYTES:
        raise BadUsage(f"{path} is larger than {MAX_BYTES // 1_000_000} MB, too big for what a person writes")
    return content


def read_text(path: Path) -> str:
    """As read_bytes(), and BadUsage for what is not UTF-8; a byte order mark is left out."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path} is not UTF-8 text (byte {error.start})") from error


class PlainYaml:
    """Mixed into a PyYAML loader: refuses anchors, aliases, tags, deep nesting and keys given twice."""

    depth = 0

    def compose_node(self: Any, parent: Any, index: Any) -> Any:
        import yaml

        event = self.peek_event()
        problem = None
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            problem = "anchors (&) and aliases (*) are not allowed: write the value out, or quote a text"
        elif event.tag is not None:
            problem = "tags (!) are not allowed: leave it out, or quote a text"
        elif self.depth >= MAX_DEPTH:
            problem = f"it is nested more than {MAX_DEPTH} deep"
        if problem:
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)  # type: ignore[misc]
        self.depth -= 1
        return node

    def construct_mapping(self: Any, node: Any, deep: bool = False) -> Any:
        import yaml

        keys: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{short(str(key))!r} is given twice", key_node.start_mark
                )
            if isinstance(key, Hashable):
                keys.add(key)
        return super().construct_mapping(node, deep)  # type: ignore[misc]


def load_yaml(text: str, source: str, loader: Any = None) -> Any:
    """The one document in `text`.

    Args:
        source: Names it in errors.
        loader: A PyYAML loader class that PlainYaml is mixed into; default: plain YAML 1.1.

    Raises:
        BadUsage: One line with the line and column of the mistake.
    """
    import yaml

    class Default(PlainYaml, yaml.SafeLoader):
        pass

    try:
        return yaml.load(text, loader or Default)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        said = short(str(error.problem or error.context), 200)
        raise BadUsage(f"{source} is not valid YAML{where}: {said}") from error
    except yaml.YAMLError as error:
        raise BadUsage(f"{source} is not valid YAML: {' '.join(str(error).split())}") from error
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{source} is not valid YAML: {short(str(error), 200)}") from error


def short(text: str, length: int = 60) -> str:
    """Text from a person or a file on one line of at most `length` characters, for a message."""
    return printable(one_line(text, length, "..."))
