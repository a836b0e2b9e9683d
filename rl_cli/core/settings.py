"""Where rl-cli keeps its things, and the settings that hold.

Flags over environment variables over ./rl-cli.yaml over ~/.config/rl-cli/config.yaml over defaults. A file in
a working folder came with the folder: what it would loosen counts only where the person trusts it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error
from rl_cli.core.handwritten import load_yaml, read_bytes, short
from rl_cli.core.settings_layers import Kind, Layer, loosened, merge
from rl_cli.core.settings_schema import check_setting

BY_VARIABLE = ("model", "seed", "environments_dir", "toolsets_file")
VARIABLES = {name: f"RL_CLI_{name.upper()}" for name in BY_VARIABLE}
"""Only what loosens nothing can be set by a variable."""


@dataclass(frozen=True)
class Settings:
    """What holds for this call; `rl_cli.core.settings_schema` says what each may be."""

    model: str | None = None
    seed: int | None = None
    environments_dir: str = "my_envs"
    toolsets_file: str | None = None
    endpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> api, base_url, key_env, window, max_output_tokens, ...; only what was set."""
    approvals: list[dict[str, Any]] = field(default_factory=list)
    """Rules, strongest first: tool, do, arguments where given, and `by`, the kind of layer it is from."""
    budgets: dict[str, dict[str, float]] = field(default_factory=dict)
    """session, run, day -> dollars, tokens, gpu_hours, hours; only what was set."""
    prices: dict[str, Any] = field(default_factory=dict)
    """gpu_hour: dollars; models: provider/name -> input and output, dollars per million tokens."""
    allow_unknown_prices: bool = False
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """Where each value came from, under the dotted names of `rl_cli.core.settings_layers.leaves`."""


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


def config_folder() -> Path:
    """The folder of the person's own settings, answers and trust; it need not exist."""
    chosen = os.environ.get("XDG_CONFIG_HOME") or ""
    base = Path(chosen) if os.path.isabs(chosen) else Path("~/.config").expanduser()
    return base / "rl-cli"


def folder_file() -> Path:
    """The working folder's settings file; it need not exist."""
    return Path("rl-cli.yaml").absolute()


def user_file() -> Path:
    """The person's settings file; it need not exist."""
    return config_folder() / "config.yaml"


def answers_file() -> Path:
    """The rules that the person made by answering "always"; it need not exist."""
    return config_folder() / "approvals.yaml"


def trust_register() -> Path:
    """Which folders' files are trusted; it need not exist."""
    return config_folder() / "trusted.json"


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings that hold now.

    Args:
        flags: What was given on the command line; None values count as not given.

    Raises:
        BadUsage: A file is malformed, a key is unknown (with the nearest name), a value has the wrong type,
            or the working folder's file would loosen something and is not trusted.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    layers = [Layer("flag", {name: check_setting(name, value, "flag") for name, value in given.items()})]
    for name, variable in VARIABLES.items():
        if text := os.environ.get(variable):
            origin = f"environment variable {variable}"
            layers.append(Layer(origin, {name: check_setting(name, text, origin)}))
    own = _own_layers()
    values, origins = merge([*layers, *_folder_layers(own), *own])
    return Settings(**values, origins=origins)


def read_settings_file(path: Path) -> dict[str, Any]:
    """The keys that a settings file sets, each checked. Raises BadUsage, naming file and key."""
    return parse_settings(read_bytes(path), str(path))


def parse_settings(content: bytes, source: str) -> dict[str, Any]:
    """As read_settings_file(), of content that was read already."""
    tree = _parse(content, source)
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise BadUsage(f"{source} must be a mapping of settings", "for example: model: builtin/operator")
    set_keys = {str(name): value for name, value in tree.items() if value is not None}
    return {name: check_setting(name, value, source) for name, value in set_keys.items()}


def parse_rules(content: bytes, source: str) -> list[dict[str, Any]]:
    """The rules in a file of answers, each checked. Raises BadUsage, naming file and rule."""
    rules: list[dict[str, Any]] = check_setting("approvals", _parse(content, source) or [], source)
    return rules


def loosened_by(content: bytes) -> list[str]:
    """What the working folder's file, with this content, would loosen: dotted names."""
    return loosened(parse_settings(content, str(folder_file())), _own_layers())


def _own_layers() -> list[Layer]:
    """What the person wrote and answered, strongest first."""
    layers = []
    path = user_file()
    if path.exists():
        layers.append(Layer(str(path), read_settings_file(path), "user"))
    path = answers_file()
    if path.exists():
        layers.append(Layer(str(path), {"approvals": parse_rules(read_bytes(path), str(path))}, "remembered"))
    return layers


def _folder_layers(own: list[Layer]) -> list[Layer]:
    """The working folder's file. It is read once, so what is checked is what holds."""
    path = folder_file()
    if not path.exists():
        return []
    content = read_bytes(path)
    values = parse_settings(content, str(path))
    kind: Kind = "folder"
    if loose := loosened(values, own):
        from rl_cli.core.trust import trusted

        known = trusted(trust_register(), path, content)
        if not known:
            names = short(", ".join(loose), 200)
            changed = "; it has changed since you trusted it" if known is False else ""
            raise BadUsage(
                f"{path} sets what a folder's file may not set by itself: {names}{changed}",
                "read the file; if you agree with it: rl-cli config trust",
            )
        kind = "trusted"
    return [Layer(str(path), values, kind)]


def _parse(content: bytes, source: str) -> Any:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadUsage(f"{source} is not UTF-8 text (byte {error.start})") from error
    return load_yaml(text, source)
