"""`rl-cli chat`: a conversation at the terminal, which can be gone on with later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.app import YesOption, run_async, single
from rl_cli.cli.ask import AddressOption, ModelOption, SeedOption

if TYPE_CHECKING:
    from rl_cli.agent.history import History
    from rl_cli.cli.conversation import Conversation, Flags

app = single()

RECAP_LINES, RECAP_COLUMNS = 8, 320


@app.command()
def chat(
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="ID", help="Go on with a session: its id, or 'latest'.")
    ] = None,
    yes: YesOption = False,
    model: ModelOption = None,
    base_url: AddressOption = None,
    seed: SeedOption = None,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines: no editing, no history.")] = False,
) -> None:
    """Talk with the assistant. /help says what else can be typed; a pipe is read line by line."""
    from rl_cli.cli.conversation import Flags

    if code := run_async(_chat(Flags(model, base_url, seed, yes, resume), plain)):
        raise typer.Exit(code)


async def _chat(flags: Flags, plain: bool) -> int:
    """Returns the exit code."""
    from rl_cli.cli.chat_input import EditedInput, PlainInput, can_edit
    from rl_cli.cli.chat_loop import ChatLoop
    from rl_cli.cli.conversation import converse, say_how_to_go_on
    from rl_cli.cli.line_reader import LineReader
    from rl_cli.cli.run_watch import RunWatch
    from rl_cli.cli.stream_display import TextDisplay
    from rl_cli.cli.terminal_mode import terminal_mode

    display, lines, edited = TextDisplay(), LineReader(), can_edit() and not plain
    try:
        with terminal_mode("keys" if edited else "lines"):
            async with converse(flags, display, lines) as conversation:
                _greet(conversation, bool(flags.session))
                home, state = conversation.assistant.home, conversation.assistant.state
                watch = RunWatch(home, lambda: state.get("run_id"))
                typed = EditedInput(home, lambda: watch.named_line) if edited else PlainInput(lines)
                try:
                    code = await ChatLoop(conversation, display, typed, watch).run()
                finally:
                    conversation.say_what_goes_on()
                    say_how_to_go_on(conversation)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    return code


def _greet(conversation: Conversation, resumed: bool) -> None:
    session = conversation.assistant.session
    said = f"Session {session.id}"
    if resumed:
        from rl_cli.cli.event_lines import turns_text
        from rl_cli.core.cuts import one_line

        history = session.history
        said += f", {turns_text(history.turns)} so far: {one_line(history.title, 60)}"
    conversation.display.notice(f"{said} · /help for commands, Ctrl-D to leave")
    if resumed:
        for line in last_exchange(session.history):
            conversation.display.aside(line)


def _first_lines(text: str) -> list[str]:
    """The first lines of a text, as they were broken."""
    from rl_cli.core.cuts import one_line

    lines = [line for line in text.splitlines() if line.strip()]
    shown = [one_line(line, RECAP_COLUMNS) for line in lines[:RECAP_LINES]]
    return [*shown, "…"] if len(lines) > RECAP_LINES else shown


def last_exchange(history: History) -> list[str]:
    """The last request, the first lines of what answered it, and how that ended."""
    from rl_cli.cli.session_text import ending_of
    from rl_cli.core.cuts import one_line

    if not history.request:
        return []
    ending = ending_of(history.stop, history.why) if history.stop else ""
    if history.unfinished or history.why == "cancelled":
        ending = "the last turn was cut off"
    lines = [
        f"> {one_line(history.request, 160)}",
        *_first_lines(history.words),
        f"({ending})" if ending else "",
    ]
    return [f"  {line}" for line in lines if line]
