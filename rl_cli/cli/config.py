"""`rl-cli config show|check`: the settings that hold here, and whether a file is right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rl_cli.cli.app import JsonOption, group
from rl_cli.cli.output import print_json, print_table
from rl_cli.core.errors import BadUsage
from rl_cli.core.handwritten import load_yaml, read_text
from rl_cli.core.settings import home, load_settings, read_settings_file
from rl_cli.core.settings_layers import leaves
from rl_cli.core.settings_schema import SETTINGS

app = group("Show and check the settings.")


@app.command("show")
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Also say where each value comes from.")] = False,
    json_: JsonOption = False,
) -> None:
    """Show the settings that hold here."""
    settings = load_settings()
    values = {name: getattr(settings, name) for name in SETTINGS} | {"home": str(home())}
    home_origin = "environment variable RL_CLI_HOME" if os.environ.get("RL_CLI_HOME") else "default"
    origins = settings.origins | {"home": home_origin}
    single = leaves(values)
    if json_ and origin:
        print_json({name: {"value": value, "origin": origins[name]} for name, value in single.items()})
    elif json_:
        print_json(values)
    elif origin:
        rows = [(name, value, origins[name]) for name, value in single.items()]
        print_table(["setting", "value", "origin"], rows)
    else:
        print_table(["setting", "value"], list(single.items()))


@app.command("check")
def check(file: Annotated[Path, typer.Argument(help="A settings file, or the config of a run.")]) -> None:
    """Check a settings file (rl-cli.yaml) or the config of a run (run.yaml)."""
    text = read_text(file)
    if _is_run_config(text):
        from rl_cli.config.edit import from_yaml

        config = from_yaml(text, str(file))
        print(f"{file}: a good config of a run that learns {config.environment.name}")
    else:
        names = read_settings_file(file)
        print(f"{file}: good settings ({', '.join(names) or 'none set'})")


def _is_run_config(text: str) -> bool:
    """Does it set any section of a run's config? Malformed YAML is left for the settings' reader."""
    from rl_cli.config.tree import RunConfig

    try:
        content = load_yaml(text, "")
    except BadUsage:
        return False
    return isinstance(content, dict) and not content.keys().isdisjoint(
        RunConfig.model_fields.keys() - SETTINGS
    )
