"""`rl-cli config show|set|check|trust`: the settings that hold here, changed, checked, trusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption, group
from rl_cli.cli.output import print_json, print_table, say
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import load_yaml, read_bytes, read_text, short
from rl_cli.core.settings import (
    folder_file,
    home,
    load_settings,
    loosened_by,
    read_settings_file,
    trust_register,
)
from rl_cli.core.settings_layers import leaves
from rl_cli.core.settings_schema import SETTINGS

app = group("Show, change, check and trust settings.")


@app.command("show")
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Also say where each value comes from.")] = False,
    json_: JsonOption = False,
) -> None:
    """Show the settings that hold here."""
    settings = load_settings()
    values = {name: _shown(name, getattr(settings, name)) for name in SETTINGS} | {"home": str(home())}
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


@app.command("set", context_settings={"ignore_unknown_options": True})  # so that -3 is a value
def set_(
    key: Annotated[str, typer.Argument(help="The setting's dotted name, e.g. budgets.day.dollars.")],
    value: Annotated[str, typer.Argument(help="Its value, as in YAML; null unsets it.")],
) -> None:
    """Set one value in your own settings file. What else it holds stays, comments too."""
    from rl_cli.core.settings_edit import set_setting

    if key == "model":
        _check_model(value)
    file, understood = set_setting(key, value)
    say(f"{key} is {'no longer set' if understood is None else 'set'} in {file}")


@app.command("check")
def check(file: Annotated[Path, typer.Argument(help="A settings file, or the config of a run.")]) -> None:
    """Check a settings file (rl-cli.yaml) or the config of a run (run.yaml)."""
    text = read_text(file)
    if _is_run_config(text):
        from rl_cli.config.edit import from_yaml

        config = from_yaml(text, str(file))
        print(f"{file}: a good config of a run that learns {config.environment.name}")
    else:
        values = read_settings_file(file)
        _check_rules(values.get("approvals", []), file)
        print(f"{file}: good settings ({', '.join(values) or 'none set'})")


@app.command("trust")
def trust(
    revoke: Annotated[bool, typer.Option("--revoke", help="No longer trust it.")] = False,
) -> None:
    """Trust this folder's rl-cli.yaml as it is now: it may allow calls, name endpoints, raise budgets.

    When the file changes, it has to be trusted anew.
    """
    from rl_cli.core import trust as register

    path = folder_file()
    if revoke:
        known = register.revoke(trust_register(), path)
        say(f"{path} is no longer trusted" if known else f"{path} was not trusted")
        return
    content = read_bytes(path)
    loose = loosened_by(content)
    if not loose:
        say(f"{path} needs no trust: it loosens nothing")
        return
    register.trust(trust_register(), path, content)
    say(f"{path} is trusted until it changes. It sets: {', '.join(loose)}")


def _check_model(written: str) -> None:
    """Raises BadUsage for a provider that is not known now, with the nearest names."""
    from rl_cli.agent.models import check_name

    name = load_yaml(written, "the value of model")
    if isinstance(name, str):
        check_name(name, load_settings())


def _check_rules(rules: list[dict[str, Any]], file: Path) -> None:
    """Raises BadUsage for a rule that no call can ever fit; when settings are loaded it is let be."""
    from rl_cli.agent.approval_rules import Rule
    from tools.dispatcher import all_tools

    for i, rule in enumerate(map(Rule.from_settings, rules)):
        fitting = [spec for name, spec in all_tools().items() if rule.fits_tool(name)]
        if not fitting:
            hint = did_you_mean(rule.tool, list(all_tools()))
            raise BadUsage(f"{file}: no tool fits 'approvals.{i}.tool' ({short(rule.tool)})", hint)
        known = {name for spec in fitting for name in spec.parameters["properties"]}
        for name in rule.arguments.keys() - known:
            hint = did_you_mean(name, sorted(known)) if known else "it takes none"
            raise BadUsage(f"{file}: 'approvals.{i}' names no argument of its tool: {short(name)}", hint)


def _shown(name: str, value: Any) -> Any:
    """Rules without the mark of their layer, which --origin tells."""
    return [{k: v for k, v in rule.items() if k != "by"} for rule in value] if name == "approvals" else value


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
