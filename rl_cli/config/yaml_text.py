"""YAML as configs need it: 1e-4 is a number, off is a word, a mistake has a line and a column.

PyYAML follows YAML 1.1, where `1e-4` is text, `off` is false and `0123` is octal. Here plain scalars are read
by the core schema of YAML 1.2 (yaml.org/spec/1.2.2, section 10.3); what is written reads the same under both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rl_cli.core.errors import BadUsage
from rl_cli.core.handwritten import PlainYaml, load_yaml, read_text, short

_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL = re.compile(r"~|null|Null|NULL|")


class _Loader(PlainYaml, yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML's own class attribute)


class _Dumper(yaml.SafeDumper):
    """Quotes text that either version of YAML would read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.Node:
        """YAML 1.1 takes three more characters for line breaks; between double quotes they are escaped."""
        style = '"' if any(c in text for c in "\x85\u2028\u2029") else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)


def _whole(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(f"(?:{pattern.pattern})\\Z")


for _tag, _pattern in (("bool", _BOOLEAN), ("null", _NULL), ("int", _INTEGER), ("float", _FLOAT)):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole(_pattern), None)


def _construct_integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def parse_yaml(text: str, source: str) -> Any:
    """The one document in `text`; `source` names it in errors.

    Raises:
        BadUsage: One line with the line and column of the mistake; so are anchors, tags and depth.
    """
    return load_yaml(text, source, _Loader)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; an empty file is an empty mapping.

    Raises:
        BadUsage: The file is missing, unreadable, no regular file, too big, not UTF-8, malformed, or not a
            mapping.
    """
    content = parse_yaml(read_text(path), str(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadUsage(f"{path} must hold a mapping of fields to values, not a {type(content).__name__}")
    return content


def dump_yaml(content: dict[str, Any]) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)


def parse_assignment(text: str) -> tuple[str, Any]:
    """Splits `a.b=VALUE` as --set takes it. VALUE is YAML, so `1e-4` is a number and `off` is text.

    A list or a mapping such as `{rank: 32}` is read too: the config's own rules say where one belongs.

    Raises:
        BadUsage: No `=`, no field, or a VALUE that is malformed.
    """
    field, equals, value = text.partition("=")
    field = field.strip()
    if not equals or not field:
        raise BadUsage(f"--set takes FIELD=VALUE, not {short(text)!r}", "for example --set grpo.steps=40")
    return field, parse_yaml(value, f"the value of {short(field)}")
