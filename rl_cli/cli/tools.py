"""`rl-cli tools list|show|call`: the tools that the assistant, rollouts and rewards use."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption, YesOption, group, run_async
from rl_cli.cli.output import cell, print_fields, print_json, print_json_lines, print_table
from rl_cli.core.errors import BadUsage, Refused, RlCliError, WorkFailed, did_you_mean

BAD_USAGE = frozenset({"unknown_tool", "invalid_arguments", "bad_usage"})
"""Types of errors that are the caller's: exit code 2."""

app = group("List, describe and call the tools that the assistant uses.")


@app.command("list")
def list_tools(json_: JsonOption = False) -> None:
    """List all tools."""
    from tools.dispatcher import all_tools

    rows = [
        {
            "name": s.name,
            "toolset": s.toolset,
            "risk": s.risk,
            "description": s.description.partition("\n")[0],
        }
        for s in all_tools().values()
    ]
    if json_:
        print_json_lines(rows)
    else:
        print_table(["tool", "toolset", "risk", "description"], [list(row.values()) for row in rows])


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="The tool's name.")], json_: JsonOption = False) -> None:
    """Show one tool: what it does, what it takes, what it may do."""
    from tools.arguments import signature
    from tools.dispatcher import all_tools

    specs = all_tools()
    if name not in specs:
        raise BadUsage(f"unknown tool '{name}'", did_you_mean(name, list(specs)))
    spec = specs[name]
    if json_:
        print_json(
            {
                "name": name,
                "toolset": spec.toolset,
                "risk": spec.risk,
                "description": spec.description,
                "parameters": spec.parameters,
            }
        )
        return
    print(f"{signature(spec)}\n\n{spec.description}\n")
    properties = spec.parameters["properties"]
    print_fields({"toolset": spec.toolset, "risk": spec.risk})
    for parameter, schema in properties.items():
        print(f"  {parameter}: {cell(schema.get('description'))}")


@app.command("call")
def call(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments as a JSON object.", metavar="JSON")] = "",
    yes: YesOption = False,
) -> None:
    """Call a tool and print its result, a JSON object."""
    result = run_async(_call(name, arguments, yes))
    print_json(result)
    if not result["ok"]:
        raise _as_error(result["error"])


async def call_tool(name: str, arguments: dict[str, Any], yes: bool = False) -> dict[str, Any]:
    """A tool's result, for commands that show it in their own way.

    Raises:
        RlCliError: The call failed (WorkFailed), was refused (Refused) or wrong (BadUsage).
    """
    result = await _call(name, arguments, yes)
    if not result["ok"]:
        raise _as_error(result["error"])
    return result


async def _call(name: str, arguments: str | dict[str, Any], yes: bool) -> dict[str, Any]:
    from rl_cli.agent.approvals import Approvals
    from rl_cli.core.settings import home, load_settings
    from rl_cli.spending.gate import why_not
    from tools.dispatcher import CallContext, handle_function_call
    from tools.everyday.browser_session import close_session
    from tools.everyday.task_sandbox import TaskSandbox
    from tools.sandboxes import kinds
    from tools.sandboxes.base import SandboxConfig
    from tools.toolsets import implemented

    settings = load_settings()
    approvals = Approvals(
        settings.approvals,
        yes=yes,
        interactive=sys.stdin.isatty() and sys.stderr.isatty(),
        one_call=True,
        budget_left=partial(why_not, home(), settings, None),
    )
    context = CallContext(
        caller="cli",
        task_id=f"cli-{os.getpid()}",
        toolsets=implemented(),
        approve=approvals,
        result_limit=sys.maxsize,
        sandbox=TaskSandbox.of(SandboxConfig(kinds.DEFAULT, workdir=Path.cwd())),
        file_roots=(Path.cwd(),),
    )
    try:
        result: dict[str, Any] = json.loads(await handle_function_call(name, arguments, context))
    finally:
        await close_session(context.live)
        await context.sandbox.stop()
    return result


def _as_error(error: dict[str, Any]) -> RlCliError:
    kind: type[RlCliError] = BadUsage if error["type"] in BAD_USAGE else WorkFailed
    kind = Refused if error["type"] == "refused" else kind
    return kind(error["message"], error.get("hint"))
