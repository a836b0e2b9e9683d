"""Where rl-cli keeps its things, and the few settings a person can make.

Flags over environment variables over ./rl-cli.yaml over ~/.config/rl-cli/config.yaml over defaults.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.files import explain_os_error
from rl_cli.core.handwritten import load_yaml, read_text, short


@dataclass(frozen=True)
class Settings:
    """What holds for this call. `origins` says where each value came from."""

    model: str | None = None
    seed: int | None = None
    environments_dir: str = "my_envs"
    origins: dict[str, str] = field(default_factory=dict, compare=False)


DESCRIPTIONS = {
    "model": "The model that acts as the assistant, as provider/name.",
    "seed": "Seed for whatever is random.",
    "environments_dir": "The folder with your own environments.",
}
TYPES: dict[str, type] = {"model": str, "seed": int, "environments_dir": str}


def home() -> Path:
    """The folder of runs, sessions and batches: RL_CLI_HOME, else the platform's user data folder."""
    chosen = os.environ.get("RL_CLI_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("rl-cli"))


def ensure_home() -> Path:
    """`home()`, created and written to on trial.

    Raises:
        BadUsage: It cannot be created or written.
        WorkFailed: The disk is full.
    """
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"\0" * 4096)
    except OSError as error:
        explained = explain_os_error(error, folder)
        what = explained.message
        hint = "set RL_CLI_HOME to a folder that you can write to, on a disk with free space"
        raise type(explained)(f"rl-cli's home folder cannot be used: {what}", hint) from error
    return folder


def environments_folder() -> Path:
    """The folder of the person's own environments; it need not exist."""
    return Path(load_settings().environments_dir).expanduser().absolute()


def settings_files() -> list[Path]:
    """The files that are read, strongest first; they need not exist."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return [Path("rl-cli.yaml").absolute(), config / "rl-cli" / "config.yaml"]


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings that hold now.

    Args:
        flags: What was given on the command line; None values count as not given.

    Raises:
        BadUsage: A file is malformed, a key is unknown (with the nearest name), a value has the wrong type.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    layers: list[tuple[str, dict[str, Any]]] = [("flag", given)]
    for name in TYPES:
        variable = f"RL_CLI_{name.upper()}"
        if os.environ.get(variable):
            layers.append((f"environment variable {variable}", {name: os.environ[variable]}))
    layers += [(str(path), read_settings_file(path)) for path in settings_files() if path.exists()]
    values: dict[str, Any] = {}
    origins = {f.name: "default" for f in fields(Settings) if f.name in TYPES}
    for origin, layer in layers:
        for name, value in layer.items():
            checked = _check(name, value, origin)
            if name not in values:
                values[name], origins[name] = checked, origin
    return Settings(**values, origins=origins)


def read_settings_file(path: Path) -> dict[str, Any]:
    """The keys that a settings file sets, each checked. Raises BadUsage, naming file and key."""
    content = load_yaml(read_text(path), str(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadUsage(f"{path} must be a mapping of settings", "for example: model: builtin/operator")
    set_keys = {str(name): value for name, value in content.items() if value is not None}
    return {name: _check(name, value, str(path)) for name, value in set_keys.items()}


def _check(name: str, value: Any, origin: str) -> Any:
    if name not in TYPES:
        name = short(name)
        raise BadUsage(f"unknown setting '{name}' ({origin})", did_you_mean(name, list(TYPES)))
    wanted = TYPES[name]
    if wanted is int and isinstance(value, str) and origin.startswith("environment variable"):
        try:
            return int(value)
        except ValueError:
            raise BadUsage(
                f"setting '{name}' must be a whole number, not {short(repr(value))} ({origin})"
            ) from None
    if not isinstance(value, wanted) or isinstance(value, bool):
        what = "a whole number" if wanted is int else "text"
        raise BadUsage(f"setting '{name}' must be {what}, not {short(repr(value))} ({origin})")
    return value
