"""`rl-cli data stats`: what a batch holds, what it lacks, what it has cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption
from rl_cli.cli.output import print_fields, print_json, print_table, say

NameArgument = Annotated[str, typer.Argument(help="The batch.", show_default=False)]
SHOWN = (
    *("name", "state", "reason", "items", "expected", "done", "failed", "pending"),
    *("merged", "discarded", "marks"),
)
SHOWN_LISTED = 10
"""Missing samples that are listed for a person."""


def stats(name: NameArgument, json_: JsonOption = False) -> None:
    """Count what a batch has, at any time: while it is made, when it was killed, when files are damaged."""
    from rl_cli.data.batch.folder import find_batch
    from rl_cli.data.batch.summary import summary

    found = summary(find_batch(name))
    if json_:
        print_json(found)
    else:
        print_summary(found)
    warn(found, running=found["state"] == "running")
    if found["state"] == "finished":
        list_missing(found)


def print_summary(found: dict[str, Any]) -> None:
    """The figures for a person: a line each, then the tools."""
    fields = {name: _shown(found[name]) for name in SHOWN if name in found}
    tokens, reasoning, score = found["tokens"], found["reasoning"], found["score"]
    fields["requests"] = found["requests"]
    fields["tokens"] = f"{tokens['input']} in ({tokens['cached']} cached), {tokens['output']} out"
    fields["cost"] = _cost(found)
    fields["reasoning"] = f"{reasoning['with']} of {reasoning['turns']} turns"
    if score:
        fields["score"] = "{mean:.4g} on average, {min:.4g} to {max:.4g}, of {count} rows".format(**score)
    if "dir" in found:
        fields["folder"] = found["dir"]
    print_fields(fields)
    if curve := found["evaluation"]:
        print_table(["evaluated after", "scored", "mean score", "requests", "cost"], map(_point, curve))
    if tools := found["tool_stats"]:
        print_table(
            ["tool", "calls", "success", "failure"], [(name, *c.values()) for name, c in tools.items()]
        )


def warn(found: dict[str, Any], running: bool) -> None:
    """What a person should look at, on stderr."""
    damage = found["damage"]
    if damage["lines"]:
        say(f"warning: {damage['lines']} damaged lines of the ledger were passed over", error=True)
    if damage["unfinished"] and not running:
        say(f"warning: the ledger ends with {damage['unfinished']} bytes of an unfinished line", error=True)
    if found["problem"]:
        say(f"warning: what is missing cannot be told: {found['problem']}", error=True)
    if found["bad_rows"]:
        say(f"warning: {found['bad_rows']} rows of the input cannot be used", error=True)
    if found["not_in_input"]:
        say(f"note: {found['not_in_input']} samples are of items that the input has no more", error=True)


def list_missing(found: dict[str, Any]) -> None:
    """The samples that are lacking, on stderr."""
    for lacking in found["missing"][:SHOWN_LISTED]:
        say(f"missing: {lacking['key']} ({lacking['where']}): {lacking['prompt']}", error=True)
    if (more := (found["pending"] or 0) - SHOWN_LISTED) > 0:
        say(f"missing: {more} more", error=True)


def _shown(value: Any) -> Any:
    """Counts by name as text: `2 low_score, 1 no_score`."""
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or 0
    return value


def _point(line: dict[str, Any]) -> list[Any]:
    """A point of the curve over the held-out items."""
    mean, scored = line["mean_score"], f"{line['n']} of {line['n'] + line['not_scored']}"
    told = "-" if mean is None else f"{mean:.4g}"
    return [line["at"], scored, told, line["requests"], _cost({"unpriced": 0, **line})]


def _cost(found: dict[str, Any]) -> str:
    known = "unknown" if found["cost_usd"] is None else f"${found['cost_usd']:.4f}"
    return f"{known} ({found['unpriced']} rows without a price)" if found["unpriced"] else known
