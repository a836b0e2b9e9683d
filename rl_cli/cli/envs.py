"""`rl-cli envs list|show`: the environments a model can be trained on."""

from __future__ import annotations

from typing import Any

from rl_cli.cli.app import JsonOption, group, run_async
from rl_cli.cli.output import print_json, print_json_lines, print_table, say

app = group("Environments: what a model can be trained on.")


@app.command("list")
def list_command(json_: JsonOption = False) -> None:
    """List the environments, and which of them can be trained here."""
    from tools.operations.rl_environments import rl_list_environments

    rows = run_async(rl_list_environments())["environments"]
    if json_:
        print_json_lines(rows)
        return
    print_table(["environment", "trainable here", "profiles", "description"], [_row(row) for row in rows])


@app.command("show")
def show_command(name: str, json_: JsonOption = False) -> None:
    """Show one environment: splits, options, tools, reward, an example prompt."""
    import yaml

    from tools.operations.rl_environments import rl_describe_environment

    description = run_async(rl_describe_environment(name))
    if json_:
        print_json(description)
    else:
        say(yaml.safe_dump(description, sort_keys=False, allow_unicode=True, width=100).rstrip())


def _row(row: dict[str, Any]) -> list[Any]:
    here = "yes" if row["trainable_here"] else f"no: {row['why_not']}"
    return [row["name"], here, row["profiles"], row["description"]]
