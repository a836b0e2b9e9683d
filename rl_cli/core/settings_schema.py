"""What each setting may be: its name, its type at every depth, and one line that describes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import short

Check = Callable[[str, Any, str], Any]
"""(dotted name, value, where it was set) -> the value; raises BadUsage, naming all three."""

MOST = 1e15
FEW = 4
KEY_NAME = re.compile(
    r"(?:^|[_-])(?:api)?_?key$|secret|password|^token$|(?:auth|access|api)_?token", re.IGNORECASE
)
"""A setting that would be a key, if there were such settings."""
THINKING = ("low", "medium", "high", "xhigh", "max", "disabled")
RISKY_HEADERS = ("authorization", "key", "token", "secret", "cookie", "password")
"""A header with one of these in its name would carry a key."""


class Setting(NamedTuple):
    description: str
    check: Check
    default: Any = None
    """Where it is a mapping or a list: layers are merged rather than replaced."""


def check_setting(name: str, value: Any, origin: str) -> Any:
    """The value of one setting, checked at every depth.

    Args:
        name: Its name at the top of a settings file.
        value: As it was read; not None.
        origin: Where it was set, for the error.

    Raises:
        BadUsage: One line with the dotted name, what it must be, and the nearest name if it is unknown.
    """
    name = str(name)
    if name not in SETTINGS:
        raise BadUsage(f"unknown setting '{short(name)}' ({origin})", _hint(short(name), list(SETTINGS)))
    return SETTINGS[name].check(name, value, origin)


def _hint(name: str, known: list[str]) -> str:
    """What to write instead of an unknown name; few known ones are all told."""
    if KEY_NAME.search(name):
        return "keys come from the environment only; name the variable in an endpoint's key_env"
    from difflib import get_close_matches

    near = len(known) > FEW or get_close_matches(name.casefold(), known, 1, 0.75)
    return did_you_mean(name, known) if near else f"known: {', '.join(known)}"


def _wrong(name: str, what: str, value: Any, origin: str) -> BadUsage:
    return BadUsage(f"setting '{name}' must be {what}, not {_shown(value)} ({origin})")


def _shown(value: Any) -> str:
    try:
        return short(repr(value))
    except ValueError:  # an integer of thousands of digits
        return "that number"


def _text(name: str, value: Any, origin: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(name, "text", value, origin)
    return value


def _whole(name: str, value: Any, origin: str) -> int:
    if isinstance(value, str) and origin.startswith("environment variable"):
        try:
            return int(value)
        except ValueError:
            raise _wrong(name, "a whole number", value, origin) from None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, "a whole number", value, origin)
    return value


def _count(name: str, value: Any, origin: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
        raise _wrong(name, "a whole number of at least 1", value, origin)
    return value


def _amount(name: str, value: Any, origin: str) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not 0 <= value <= MOST:
        raise _wrong(name, "a number of at least 0", value, origin)
    return value


def _flag(name: str, value: Any, origin: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value, origin)
    return value


def _thinking(name: str, value: Any, origin: str) -> bool | int | str:
    if isinstance(value, bool) or (isinstance(value, str) and value in THINKING):
        return value
    if not isinstance(value, int) or not 1 <= value <= MOST:
        raise _wrong(name, f"true, false, {', '.join(THINKING)} or a number of tokens", value, origin)
    return value


def _variable(name: str, value: Any, origin: str) -> str | None:
    """The value is not repeated: somebody may have put the key itself here."""
    if value is not None and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value)):
        raise BadUsage(
            f"setting '{name}' must be the name of an environment variable ({origin})",
            "the key itself stays in the environment",
        )
    return value


def check_address(name: str, value: Any, origin: str) -> str:
    """An http(s) address with nothing secret in it. Errors do not repeat it: it may hold a password."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        good = good and (parts is None or parts.port != 0)  # it raises for what is no port
    except ValueError:
        good = False
    if not good or parts is None:
        raise BadUsage(f"'{name}' must be an address like http://localhost:8000/v1 ({origin})")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise BadUsage(
            f"'{name}' must hold no user, password, ? or # ({origin})",
            "keys stay in the environment; name the variable in key_env",
        )
    return str(value).rstrip("/")


def _header(name: str, value: Any, origin: str) -> str:
    last = name.rpartition(".")[2].casefold()
    if any(word in last for word in RISKY_HEADERS):
        raise BadUsage(
            f"setting '{name}' would put a key into a file ({origin})",
            "keys stay in the environment; name the variable in key_env",
        )
    if not isinstance(value, str) or not value.isprintable() or not value.isascii():
        raise _wrong(name, "ASCII text on one line", value, origin)
    return value


def _one_of(*values: str) -> Check:
    def check(name: str, value: Any, origin: str) -> Any:
        if not isinstance(value, str) or value not in values:
            raise _wrong(name, f"{', '.join(values[:-1])} or {values[-1]}", value, origin)
        return value

    return check


def _pattern(name: str, value: Any, origin: str) -> str:
    """For an argument of a rule. Numbers, true and null may stand as they are: they are compared as JSON."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str | int | float) or (isinstance(value, int) and abs(value) > MOST):
        raise _wrong(name, "a text pattern such as '2026*'", value, origin)
    return str(value)


def _scope(name: str, value: Any, origin: str) -> str | int | float:
    """For what a rule covers: a pattern over text, or a number that is the most."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain and not isinstance(value, str):
        raise _wrong(name, "a text pattern, or a number: the most that is covered", value, origin)
    return _amount(name, value, origin) if plain else str(value)


def _fields(checks: Mapping[str, Check], required: tuple[str, ...] = (), nullable: str = "") -> Check:
    """A mapping with these fields only. A null field counts as not set, but for `nullable`."""

    def check(name: str, value: Any, origin: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, f"a mapping of {', '.join(checks)}", value, origin)
        for key in value:
            if key not in checks:
                shown = short(str(key))
                raise BadUsage(f"unknown setting '{name}.{shown}' ({origin})", _hint(shown, list(checks)))
        kept = {k: v for k, v in value.items() if v is not None or k == nullable}
        for key in required:
            if key not in kept:
                raise BadUsage(f"setting '{name}' needs '{key}' ({origin})")
        return {k: checks[k](f"{name}.{k}", v, origin) for k, v in kept.items()}

    return check


def _by_name(check_value: Check, pattern: str, what: str, keep_null: bool = False) -> Check:
    """A mapping whose keys are names of a certain form."""

    def check(name: str, value: Any, origin: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, f"a mapping with {what}s as keys", value, origin)
        for key in value:
            if not isinstance(key, str) or not re.fullmatch(pattern, key):
                raise BadUsage(f"in setting '{name}', {_shown(key)} is no {what} ({origin})")
        kept = {k: v for k, v in value.items() if v is not None or keep_null}
        return {k: check_value(f"{name}.{k}", v, origin) for k, v in kept.items()}

    return check


def _endpoint(name: str, value: Any, origin: str) -> dict[str, Any]:
    if name.rpartition(".")[2] in ("builtin", "scripted", "run"):
        raise BadUsage(f"setting '{name}' uses a name of rl-cli's own ({origin})", "choose another name")
    return _ENDPOINT(name, value, origin)


def _rules(name: str, value: Any, origin: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise _wrong(name, "a list of rules such as {tool: rl_start_*, do: ask}", value, origin)
    return [_RULE(f"{name}.{i}", rule, origin) for i, rule in enumerate(value)]


ENDPOINT_FIELDS: dict[str, Check] = {
    "api": _one_of("openai", "anthropic"),
    "base_url": check_address,
    "key_env": _variable,
    "window": _count,
    "max_output_tokens": _count,
    "reasoning_field": _one_of("reasoning_content", "reasoning"),
    "merge_user_messages": _flag,
    "stream": _flag,
    "thinking": _thinking,
    "headers": _by_name(_header, r"[A-Za-z0-9-]+", "header name"),
}
_ENDPOINT = _fields(ENDPOINT_FIELDS, nullable="key_env")
_RULE = _fields(
    {
        "tool": _text,
        "arguments": _by_name(_pattern, r"\S+", "argument name", keep_null=True),
        "scope": _by_name(_scope, r"[a-z_]+", "name of a scope"),
        "do": _one_of("allow", "ask", "deny"),
    },
    required=("tool", "do"),
)
_LIMITS = _fields(dict.fromkeys(("dollars", "tokens", "gpu_hours", "hours"), _amount))
PRICE_FIELDS = dict.fromkeys(("input", "output", "cache_read", "cache_write"), _amount)
_PRICE = _fields(PRICE_FIELDS, required=("input", "output"))

SETTINGS: dict[str, Setting] = {
    "model": Setting("The model that acts as the assistant, as provider/name.", _text),
    "seed": Setting("Seed for whatever is random.", _whole),
    "environments_dir": Setting("The folder with your own environments.", _text, "my_envs"),
    "toolsets_file": Setting(
        "A YAML file with your own distributions of toolsets, and names for several toolsets together.", _text
    ),
    "endpoints": Setting(
        "Servers of models by name: api, base_url, key_env (the variable with the key) and what they need.",
        _by_name(_endpoint, r"[A-Za-z0-9][A-Za-z0-9_.-]*", "endpoint name"),
        {},
    ),
    "approvals": Setting(
        "Rules for tool calls, the first that fits holds: tool, arguments (patterns), do (allow, ask, deny).",
        _rules,
        [],
    ),
    "budgets": Setting(
        "Limits per session, run and day: dollars, tokens, gpu_hours, hours.",
        _fields(dict.fromkeys(("session", "run", "day"), _LIMITS)),
        {},
    ),
    "prices": Setting(
        "Prices in dollars: gpu_hour, and models (provider/name) with input and output per million tokens.",
        _fields({"gpu_hour": _amount, "models": _by_name(_PRICE, r"[^\s/]+/\S+", "model (provider/name)")}),
        {},
    ),
    "allow_unknown_prices": Setting(
        "Whether a model without a known price may be used where a dollar budget is set.", _flag, False
    ),
}
