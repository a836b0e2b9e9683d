"""`rl-cli ask "..."`: one request, answered with tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.app import JsonOption, YesOption, run_async, single
from rl_cli.core.errors import BadUsage, Refused, WorkFailed

if TYPE_CHECKING:
    from rl_cli.cli.conversation import Flags

ModelOption = Annotated[str | None, typer.Option("--model", help="Who answers: provider/name.")]
AddressOption = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Where the model is served.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the runs that are started.")]

app = single()


@app.command()
def ask(
    request: Annotated[list[str] | None, typer.Argument(help="What to do, in English or Chinese.")] = None,
    yes: YesOption = False,
    model: ModelOption = None,
    base_url: AddressOption = None,
    seed: SeedOption = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Go on with a session: its id, or 'latest'.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Ask the assistant for something, such as "train a GSM8K model"."""
    from rl_cli.cli.conversation import Flags

    text = " ".join(request or []).strip()
    if not text:
        what = "there is no request" if not request else "the request is empty"
        raise BadUsage(
            what, 'say it as an argument: rl-cli ask "train a GSM8K model"; a pipe: ... | rl-cli chat'
        )
    if code := run_async(_ask(text, Flags(model, base_url, seed, yes, session), json_)):
        raise typer.Exit(code)


async def _ask(request: str, flags: Flags, as_json: bool) -> int:
    """Returns the exit code."""
    import asyncio

    from rl_cli.cli.conversation import converse, end_fields, say_how_to_go_on, why_it_ended
    from rl_cli.cli.display import JsonDisplay, choose_display
    from rl_cli.cli.line_reader import LineReader

    display = choose_display(as_json)
    try:
        async with converse(flags, display, LineReader()) as conversation:
            result, code = await conversation.turn(request)
            if isinstance(display, JsonDisplay):
                display.end(**end_fields(result, conversation.assistant.session))
            elif display.screen.live:
                say_how_to_go_on(conversation, from_ask=True)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if why := why_it_ended(result):
        raise Refused(why) if code == 3 else WorkFailed(why)
    return code
