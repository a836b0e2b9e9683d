"""`rl-cli data distributions`: the named distributions of toolsets, and what they come to on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.output import print_fields, print_json, print_json_lines, print_table
from rl_cli.core.settings import load_settings


def distributions(
    name: Annotated[
        str | None, typer.Argument(help="Show this one, with each of its toolsets.", show_default=False)
    ] = None,
    json_: JsonOption = False,
) -> None:
    """List the distributions of toolsets, and what they contain on this machine.

    A distribution offers each of its toolsets in so many of a hundred items. Add your own in a YAML file that
    the setting toolsets_file names.
    """
    from tools.distributions import load_catalogue
    from tools.toolsets import TOOLSETS

    file = load_settings().toolsets_file
    catalogue = load_catalogue(Path(file).expanduser().absolute() if file else None)
    names = list(catalogue.distributions) if name is None else [catalogue.find(name).name]
    rows = [_row(catalogue, each) for each in names]
    if json_:
        print_json(rows[0]) if name else print_json_lines(rows)
    elif name:
        print_fields({key: rows[0][key] for key in ("name", "description", "source")})
        print_table(
            ["toolset", "percent", "what", "not here because"],
            [
                (
                    each["name"],
                    each["percent"],
                    TOOLSETS[each["name"]].description
                    if each["name"] in TOOLSETS
                    else ", ".join(each["members"]),
                    each["reason"],
                )
                for each in rows[0]["toolsets"]
            ],
        )
    else:
        print_table(
            ["distribution", "toolsets here (percent)", "not here", "description"],
            [(row["name"], _listed(row, True), _listed(row, False), row["description"]) for row in rows],
        )


def _row(catalogue: Any, name: str) -> dict[str, Any]:
    found = catalogue.find(name)
    reasons = catalogue.usable(name)
    toolsets = [
        {
            "name": entry,
            "percent": percent,
            "members": list(catalogue.members(entry)),
            "usable": reasons[entry] is None,
            "reason": reasons[entry],
        }
        for entry, percent in found.percents.items()
    ]
    source = "yours" if found.own else "shipped"
    return {"name": name, "description": found.description, "source": source, "toolsets": toolsets}


def _listed(row: dict[str, Any], usable: bool) -> str | None:
    return (
        ", ".join(
            f"{each['name']} {each['percent']:g}" for each in row["toolsets"] if each["usable"] is usable
        )
        or None
    )
