"""Layers of settings, to the values that hold, where each came from, what a folder's file would loosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rl_cli.core.settings_schema import SETTINGS

Kind = Literal["given", "folder", "trusted", "user", "remembered"]
"""given: a flag or a variable; folder: a working folder's file; trusted: one that the person trusts;
user: the person's own file; remembered: what the person answered with "always"."""

Path = tuple[str, ...]


class Layer(NamedTuple):
    """Checked settings from one place."""

    origin: str
    values: Mapping[str, Any]
    kind: Kind = "given"


def merge(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that hold, and the origin of each leaf under its dotted name.

    The strongest layer wins, for each endpoint, priced model and budget by itself. Of budgets, a folder's
    file that is not trusted only lowers what others set. Rules for approval are all kept, the strongest
    layer's first, each with its layer's kind as `by`.

    Args:
        layers: Strongest first.
    """
    held: dict[Path, tuple[Any, str]] = {}
    for layer in reversed(layers):
        for path, value in _parts(layer.values):
            raises = (
                layer.kind == "folder" and path[0] == "budgets" and path in held and value > held[path][0]
            )
            if not raises:
                held[path] = value, layer.origin
    rules = [
        ({**rule, "by": layer.kind}, layer.origin)
        for layer in layers
        for rule in layer.values.get("approvals", [])
    ]
    values = {name: _empty(setting.default) for name, setting in SETTINGS.items()}
    origins = dict.fromkeys(SETTINGS, "default")
    for path, (value, origin) in sorted(held.items(), key=lambda item: item[0]):
        _put(values, path, value)
        origins |= dict.fromkeys(leaves({".".join(path): value}), origin)
    values["approvals"] = [rule for rule, _ in rules]
    origins |= {f"approvals.{i}": origin for i, (_, origin) in enumerate(rules)}
    return values, {name: origins[name] for name in leaves(values)}


def loosened(folder: Mapping[str, Any], others: Sequence[Layer]) -> list[str]:
    """Dotted names of what a working folder's file would loosen beyond the other layers.

    That is every endpoint and price that they do not set in the same way, every rule that allows, every
    budget above theirs, and the use of models without a price.
    """
    held, _ = merge(others)
    theirs = dict(_parts(held))
    found = [
        f"approvals (allow {rule['tool']})" for rule in folder.get("approvals", []) if rule["do"] == "allow"
    ]
    for path, value in _parts(folder):
        raises = path[0] == "budgets" and value > theirs.get(path, value)
        names = path[0] in ("endpoints", "prices") and value != theirs.get(path)
        opens = path == ("allow_unknown_prices",) and value and not theirs[path]
        if raises or names or opens:
            found.append(".".join(path))
    return found


def leaves(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every single value under its dotted name. A rule is one value, and so is what is empty."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found |= {f"{name}.{key}": leaf for key, leaf in leaves(value).items()}
        elif isinstance(value, list) and value:
            found |= {f"{name}.{i}": entry for i, entry in enumerate(value)}
        else:
            found[name] = value
    return found


def _parts(values: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """What is merged as a whole, each with its path; not the rules for approval."""
    for name, value in values.items():
        if name not in ("endpoints", "budgets", "prices", "approvals"):
            yield (name,), value
        elif name != "approvals":
            for key, entry in value.items():
                if name == "endpoints" or not isinstance(entry, dict):
                    yield (name, key), entry
                else:
                    yield from (((name, key, last), leaf) for last, leaf in entry.items())


def _put(values: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _empty(default: Any) -> Any:
    return type(default)() if isinstance(default, dict | list) else default
