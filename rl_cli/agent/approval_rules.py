"""Rules for calls of tools: patterns over a tool and its arguments, and what they decide.

Patterns are those of a shell (`*`, `?`, `[abc]`), upper and lower case told apart. An argument is compared as
its text, anything else than text as JSON. A rule that names an argument fits only calls that have it. A scope
is compared with what the call was estimated to be: text is a pattern, a number is the most that it covers.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from rl_cli.core.json_text import repair_surrogates, to_json
from rl_cli.core.settings_layers import Kind
from rl_cli.core.settings_schema import check_setting
from tools.spec import Estimate, ToolSpec

Do = Literal["allow", "ask", "deny"]
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
UNKNOWN = "unknown"
"""The price in a scope where none is known."""
PATH_FORMATS = frozenset({"path", "file-path", "directory-path"})
PATH_NAME = re.compile(r"(?:^|_)(?:path|paths|file|files|filename|folder|dir|directory|destination|output)$")


@dataclass(frozen=True)
class Rule:
    """One rule, checked."""

    tool: str
    do: Do
    arguments: Mapping[str, str] = field(default_factory=dict)
    by: Kind | Literal["session"] = "user"
    """Who made it."""
    scope: Mapping[str, str | int | float] = field(default_factory=dict)
    """Name in `scope_of` an estimate -> pattern, or the most that is covered."""

    @classmethod
    def from_settings(cls, rule: Mapping[str, Any]) -> Rule:
        """A rule as `Settings.approvals` holds it. Raises BadUsage for one that is malformed."""
        plain = {key: value for key, value in rule.items() if key != "by"}
        checked = check_setting("approvals", [plain], "a rule for approvals")[0]
        by = rule.get("by", "user")
        return cls(checked["tool"], checked["do"], checked.get("arguments", {}), by, checked.get("scope", {}))

    def fits_tool(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)

    def fits(self, tool: str, arguments: Mapping[str, Any], estimate: Estimate | None = None) -> bool:
        scope = scope_of(estimate)
        return (
            self.fits_tool(tool)
            and all(
                name in arguments and fnmatchcase(as_text(arguments[name]), pattern)
                for name, pattern in self.arguments.items()
            )
            and all(name in scope and _within(scope[name], most) for name, most in self.scope.items())
        )

    def to_settings(self) -> dict[str, Any]:
        """As a settings file holds it."""
        arguments = {"arguments": dict(self.arguments)} if self.arguments else {}
        scope = {"scope": dict(self.scope)} if self.scope else {}
        return {"tool": self.tool, **arguments, **scope, "do": self.do}


def decide(
    rules: Sequence[Rule],
    tool: str,
    arguments: Mapping[str, Any],
    default: Do,
    estimate: Estimate | None = None,
    leaves: bool = False,
) -> tuple[Do, Rule | None]:
    """What the rules say of a call, and the rule that decided; `default` where none fits.

    The first rule that fits decides, with two exceptions. Those of a folder's file that nobody trusts only
    make it stricter. Answers to earlier questions only turn "ask" into "allow" or "deny".

    Args:
        leaves: The call leaves the sandbox: only a rule of a file that names the tool itself allows that.
    """

    def counts(rule: Rule) -> bool:
        by_name = rule.tool == tool and rule.by not in ("session", "remembered")
        return rule.fits(tool, arguments, estimate) and (by_name or not leaves or rule.do != "allow")

    def first(*kinds: str) -> Rule | None:
        return next((rule for rule in rules if rule.by in kinds and counts(rule)), None)

    rule = first("given", "trusted", "user")
    do: Do = rule.do if rule else default
    floor = first("folder")
    if floor and STRICTNESS[floor.do] > STRICTNESS[do]:
        do, rule = floor.do, floor
    if do == "ask" and (answer := first("session", "remembered")):
        do, rule = answer.do, answer
    return do, rule


def default_for(spec: ToolSpec, arguments: Mapping[str, Any], home: Path, protected: Sequence[Path]) -> Do:
    """What holds where no rule fits.

    Args:
        home: Writing is allowed inside it.
        protected: Files and folders that are asked for even inside `home`.
    """
    if spec.risk == "read":
        return "allow"
    if spec.risk == "write":
        inside = all(_is_inside(path, home, protected) for path in paths_in(spec, arguments))
        return "allow" if inside else "ask"
    return "ask"


def exactly(
    tool: str, arguments: Mapping[str, Any], by: Kind | Literal["session"], estimate: Estimate | None = None
) -> Rule:
    """The rule that allows this call, and no other with different arguments, elsewhere, or for more."""
    scope = {k: literal(v) if isinstance(v, str) else v for k, v in scope_of(estimate).items()}
    return Rule(literal(tool), "allow", {k: literal(as_text(v)) for k, v in arguments.items()}, by, scope)


def scope_of(estimate: Estimate | None) -> dict[str, str | int | float]:
    """What an approval is bound to beside the arguments; amounts rounded up to what a person is shown."""
    if estimate is None:
        return {}
    dollars = UNKNOWN if estimate.dollars is None else _rounded_up(estimate.dollars)
    return {**estimate.scope, "dollars": dollars, "gpu_hours": _rounded_up(estimate.gpu_hours)}


def _within(value: str | int | float, most: str | int | float) -> bool:
    if isinstance(most, str):
        return fnmatchcase(as_text(value), most)
    return not isinstance(value, str) and value <= most


def _rounded_up(amount: float) -> int | float:
    """To two significant digits, so that the same run estimated anew is still the same."""
    if amount <= 0 or not math.isfinite(amount):
        return 0 if amount <= 0 else amount
    digits = 1 - math.floor(math.log10(amount))
    rounded = round(math.ceil(round(amount * 10.0**digits, 6)) / 10.0**digits, max(0, digits))
    return int(rounded) if rounded == int(rounded) else rounded


def literal(text: str) -> str:
    """The pattern that fits only `text`."""
    return re.sub(r"([*?[])", r"[\1]", text)


def as_text(value: Any) -> str:
    """An argument as patterns see it."""
    return repair_surrogates(value) if isinstance(value, str) else to_json(value)


def paths_in(spec: ToolSpec, arguments: Mapping[str, Any]) -> list[str]:
    """The arguments that name a file or a folder, by their schema or their name, at any depth."""
    properties = spec.parameters.get("properties", {})
    found: list[str] = []
    for name, value in arguments.items():
        schema = properties.get(name, {})
        kinds = [schema, schema.get("items", {}), *schema.get("anyOf", [])]
        declared = any(isinstance(kind, dict) and kind.get("format") in PATH_FORMATS for kind in kinds)
        found += _paths(value, declared or bool(PATH_NAME.search(name)))
    return found


def _paths(value: Any, is_path: bool) -> list[str]:
    if isinstance(value, str | os.PathLike):
        return [os.fspath(value)] if is_path else []
    if isinstance(value, Mapping):
        return [p for k, v in value.items() for p in _paths(v, is_path or bool(PATH_NAME.search(str(k))))]
    if isinstance(value, list | tuple):
        return [path for entry in value for path in _paths(entry, is_path)]
    return []


def _is_inside(path: str, home: Path, protected: Sequence[Path]) -> bool:
    try:
        real = os.path.realpath(os.path.expanduser(path))
    except (ValueError, OSError):  # a NUL in it, or relative to a folder that is gone
        return False
    around = [folder for folder in (home, *protected) if Path(real).is_relative_to(os.path.realpath(folder))]
    return around == [home]
