"""Commands of the chat: a line that begins with one slash and a word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.handwritten import short

COMMANDS = {
    "help": ("", "show this"),
    "runs": ("", "list the newest runs"),
    "status": ("[RUN]", "how a run goes: the one in view, else the session's, else the newest"),
    "model": ("[NAME]", "who answers; with a NAME (provider/name), change that from here on"),
    "approve": (
        "[list | TOOL]",
        "what is approved; with a TOOL (a glob such as rl_*), allow it in this session",
    ),
    "cost": ("", "what this session has used and spent"),
    "compact": ("", "summarise the older turns now, to free the model's window"),
    "quit": ("", "leave; runs go on"),
}
"""Name -> (what it takes, what it does)."""
ALIASES = {"exit": "quit", "q": "quit", "?": "help", "costs": "cost"}
_FORM = re.compile(r"/([A-Za-z_-]+|\?)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Slash:
    """A command of the chat."""

    name: str
    """One of COMMANDS."""
    argument: str
    """The rest of the line; empty where there is none."""


def parse(line: str) -> Slash | None:
    """The command in a line, or None where it is a request. A path such as `/data/x.jsonl` is no command.

    A beginning that only one command has is that command.

    Raises:
        BadUsage: No such command (with the nearest), or one that takes nothing was given something.
    """
    found = _FORM.fullmatch(line.strip())
    if not found:
        return None
    word, argument = found[1].casefold(), (found[2] or "").strip()
    meant = [name for name in COMMANDS if name.startswith(word)]
    name = ALIASES.get(word) or (word if word in COMMANDS else meant[0] if len(meant) == 1 else None)
    if name is None:
        raise BadUsage(f"unknown command '/{word}'", did_you_mean(word, list(COMMANDS)))
    if argument and not COMMANDS[name][0]:
        raise BadUsage(f"/{name} takes nothing, not '{short(argument)}'")
    return Slash(name, argument)


def help_lines() -> list[str]:
    """The commands, aligned."""
    heads = [f"/{name} {takes}".rstrip() for name, (takes, _) in COMMANDS.items()]
    width = max(map(len, heads))
    return [f"  {head:<{width}}  {does}" for head, (_, does) in zip(heads, COMMANDS.values(), strict=True)]
