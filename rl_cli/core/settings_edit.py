"""The person's own settings files, as commands change them: comments stay, and the result is checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error, write_atomic
from rl_cli.core.handwritten import load_yaml, read_text, short
from rl_cli.core.redaction import redact_text
from rl_cli.core.settings import answers_file, parse_rules, parse_settings, user_file
from rl_cli.core.settings_schema import ENDPOINT_FIELDS, PRICE_FIELDS

COMMENT = re.compile(r"(?:(?<=\s)|^)#[^\n]*", re.MULTILINE)
ANSWERS_HEAD = '# Answers of "always", as rules. Delete those that should be asked again.\n'


def add_answer(rule: dict[str, Any]) -> None:
    """Appends a rule to the answers that are remembered.

    Raises:
        RlCliError: The file cannot be read or written, or is damaged.
    """
    path = answers_file()

    def with_rule(text: str) -> str:
        text = text or ANSWERS_HEAD
        new = f"{text}{'' if text.endswith(chr(10)) else chr(10)}- {on_one_line(rule)}\n"
        if parse_rules(new.encode(), str(path))[-1] != rule:
            raise BadUsage(f"{path} is not a list of one rule a line", "write the rule into it by hand")
        return new

    _rewrite(path, with_rule)


def set_setting(key: str, value_text: str) -> tuple[Path, Any]:
    """Sets one value in the person's settings file.

    Args:
        key: Its dotted name, e.g. budgets.day.dollars.
        value_text: YAML; null unsets it.

    Returns:
        The file, and the value as it was understood.

    Raises:
        BadUsage: The name or the value is wrong, or the file cannot be edited without losing something.
    """
    file, path = user_file(), path_of(key)
    value = load_yaml(value_text, f"the value of {key}")
    unset = value is None and path[-1] != "key_env"  # there, null says that no key is needed

    def with_value(text: str) -> str:
        tree = load_yaml(text, str(file))
        if tree is not None and not isinstance(tree, dict):
            raise BadUsage(f"{file} must be a mapping of settings")
        if unset:
            wanted, new = _without(tree or {}, path), _removed(text, path)
        else:
            wanted, new = _with(tree or {}, path, value), _edited(text, path, value)
        parse_settings(on_one_line(wanted).encode(), "command line")
        if new is None or (load_yaml(new, str(file)) or {}) != wanted:
            raise BadUsage(f"{file} cannot be edited at {short(key)}", "change it by hand")
        return new

    _rewrite(file, with_value)
    return file, value


def path_of(key: str) -> list[str]:
    """The parts of a dotted name. Names of endpoints and models may hold dots themselves."""
    parts = key.split(".")
    if parts[0] == "endpoints":
        at = next((i for i, part in enumerate(parts) if i > 1 and part in ENDPOINT_FIELDS), len(parts))
        parts = ["endpoints", ".".join(parts[1:at]), *parts[at:]]
    elif parts[:2] == ["prices", "models"] and len(parts) > 2:
        at = len(parts) - 1 if parts[-1] in PRICE_FIELDS else len(parts)
        parts = ["prices", "models", ".".join(parts[2:at]), *parts[at:]]
    return [part for i, part in enumerate(parts) if part or i == 0]


def _with(tree: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    tree = copy.deepcopy(tree)
    here = tree
    for i, name in enumerate(path[:-1]):
        if here.get(name) is None:
            here[name] = {}
        if not isinstance(here[name], dict):
            raise BadUsage(f"setting '{'.'.join(path[: i + 1])}' holds no settings of its own")
        here = here[name]
    here[path[-1]] = value
    return tree


def _without(tree: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """`tree` without what is at `path`, nor the mappings that it leaves empty."""
    name, rest = path[0], path[1:]
    inner = tree.get(name)
    kept = _without(inner, rest) if rest and isinstance(inner, dict) else inner if rest else None
    left = {k: v for k, v in tree.items() if k != name}
    return {k: kept if k == name else v for k, v in tree.items()} if kept not in (None, {}) else left


def _removed(text: str, path: list[str]) -> str | None:
    """As _edited(), with the entry at `path` left out, and whatever holds nothing else."""
    import yaml

    node: Any = yaml.compose(text, yaml.SafeLoader)
    cut = None
    for name in path:
        if not isinstance(node, yaml.MappingNode):
            return text if cut is None or not node.value else None
        found = next((entry for entry in node.value if entry[0].value == name), None)
        if found is None:
            return text
        if cut is None or len(node.value) > 1:
            cut = node, found
        node = found[1]
    return _cut_out(text, *cut) if cut else text


def _cut_out(text: str, mapping: Any, entry: Any) -> str | None:
    (key, value), at = entry, mapping.value.index(entry)
    start, end = key.start_mark.index, _end(value, key.end_mark.index + 1)
    if mapping.flow_style and at + 1 < len(mapping.value):
        return text[:start] + text[mapping.value[at + 1][0].start_mark.index :]
    if mapping.flow_style:
        start = _end(mapping.value[at - 1][1], 0) if at else start
        return text[:start] + text[end:]
    line = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    after = len(text) if line_end < 0 else line_end + 1
    indent = text[line:start]
    comments = [f"{indent}{found[0]}\n" for found in COMMENT.finditer(text[start:after])]
    return None if indent.strip() else text[:line] + "".join(comments) + text[after:]


def _edited(text: str, path: list[str], value: Any) -> str | None:
    """`text` with the value at `path` put in, everything else as it was; None where that is not possible."""
    import yaml

    node = yaml.compose(text, yaml.SafeLoader)
    if node is None:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{_nested(path, value)}\n"
    for depth, name in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            return None
        found = next(((k, v) for k, v in node.value if k.value == name), None)
        if found is None:
            return _added(text, node, path[depth:], value)
        key_node, node = found
        if depth == len(path) - 1 or (isinstance(node, yaml.ScalarNode) and not node.value):
            start = text.index(":", key_node.end_mark.index) + 1
            inner = _nested_value(path[depth + 1 :], value)
            return f"{text[:start]} {inner}{text[_end(node, start) :]}"
    return None


def _added(text: str, node: Any, path: list[str], value: Any) -> str:
    """A new entry at the end of a mapping."""
    if node.flow_style:
        at = node.end_mark.index - 1
        return f"{text[:at]}{', ' if node.value else ''}{_nested(path, value)}{text[at:]}"
    at = _end(node.value[-1][1], node.value[-1][0].end_mark.index + 1)
    line_end = text.find("\n", at)
    at = len(text) if line_end < 0 else line_end
    indent = " " * node.value[0][0].start_mark.column
    return f"{text[:at]}\n{indent}{_nested(path, value)}{text[at:] or chr(10)}"


def _end(node: Any, at_least: int) -> int:
    """Where a value's text ends; the end mark of a block lies behind the comments that follow it."""
    while not getattr(node, "flow_style", True) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return max(node.end_mark.index, at_least)


def _nested(path: list[str], value: Any) -> str:
    return f"{on_one_line(path[0])}: {_nested_value(path[1:], value)}"


def _nested_value(path: list[str], value: Any) -> str:
    for name in reversed(path):
        value = {name: value}
    return on_one_line(value)


def on_one_line(value: Any) -> str:
    """A value as YAML on one line."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False)
    return text.removesuffix("...\n").strip()


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    """Replaces a file by what `change` makes of its text; one process at a time."""
    from filelock import FileLock

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.parent / ".lock"):
            text = read_text(path) if path.exists() else ""
            new = change(text)
            if new == text:
                return
            if redact_text(new) != new:
                raise BadUsage(f"{path} would hold what looks like a key", "keys stay in the environment")
            write_atomic(path.resolve(), new)  # a link of the person's to the file stays
    except OSError as error:
        raise explain_os_error(error, path) from error
