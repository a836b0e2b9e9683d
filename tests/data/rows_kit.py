"""Rows to export, clean and show: every shape that a batch may hold, of few lines."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from rl_cli.cli.main import run
from rl_cli.core.extras import install_command, missing_modules
from rl_cli.core.messages import assistant, system, tool_call, tool_result, user
from tests.components import leave_out
from tests.e2e.cli import Outcome


def schema(name: str, **properties: Any) -> dict[str, Any]:
    """A tool's schema in OpenAI's form."""
    parameters = {"type": "object", "properties": properties}
    return {
        "type": "function",
        "function": {"name": name, "description": f"{name}.", "parameters": parameters},
    }


SEARCH = schema("search", city={"type": "string"}, depth={"type": "integer", "enum": [1, 2]})
READ = schema("read", path={"type": "string"})


def row(number: int, messages: list[Any], tools: list[Any], **fields: Any) -> dict[str, Any]:
    """A canonical row; fields of None are left out."""
    whole = {
        "key": f"{number:032x}-0-0",
        "messages": messages,
        "tools": tools,
        "completed": True,
        "usage": {"input_tokens": 9, "output_tokens": number, "cached_tokens": 0, "requests": 1},
        "cost_usd": 0.25,
        "model": "openai/small",
        "sampling": {},
        "seed": number,
        "toolsets": ["web"] if tools else [],
        "tool_stats": {},
        "reasoning": {"turns": 1, "with": 0},
        "marks": [],
        "metadata": {},
        **fields,
    }
    return {name: value for name, value in whole.items() if value is not None}


def plain(number: int, **fields: Any) -> dict[str, Any]:
    """A question and an answer, no tools."""
    return row(number, [user(f"Question {number}?"), assistant(f"Answer {number}.")], [], **fields)


def calling(
    number: int, tool: dict[str, Any], arguments: str, result: str = "ok", **fields: Any
) -> dict[str, Any]:
    """One call with thinking before it, its result, an answer."""
    name = tool["function"]["name"]
    call = tool_call(f"call_{number}", name, arguments)
    thinking = {**assistant(None, [call]), "reasoning": "Let me look."}
    messages = [system("Be brief."), user(f"Look {number}."), thinking, tool_result(call, result)]
    stats = {name: {"count": 1, "success": 1, "failure": 0}}
    return row(number, [*messages, assistant("Done.")], [tool], tool_stats=stats, **fields)


def varied() -> list[dict[str, Any]]:
    """Rows that differ in all that may differ: tools, arguments, metadata, missing fields."""
    return [
        plain(1),
        plain(2, metadata={"difficulty": 3}, marks=["no_reasoning"]),
        calling(3, SEARCH, '{"city": "Oslo"}', score=0.5),
        calling(4, READ, '{"path": "a", "lines": {"from": 1, "to": null}}', metadata={"tags": ["x"]}),
        calling(5, SEARCH, "{}", metadata=None, seed=None, usage=None),
        calling(6, SEARCH, '{"city": "{\\"a\\": 1}", "depth": 1.5}', sampling={"temperature": 0.7}),
    ]


def needs_the_data_extra() -> None:
    """Leaves the calling test out where it is not installed."""
    if missing_modules("data"):
        leave_out(f"the data extra ({install_command('data')})")


def run_here(*words: str) -> Outcome:
    """`rl-cli WORDS` without a process of its own."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(words))
    return Outcome(code, out.getvalue(), err.getvalue())


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), "utf-8")
    return path
