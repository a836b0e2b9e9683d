"""What the person types in the chat: an editable prompt on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rl_cli.cli.line_reader import LineInterrupted, LineReader, is_terminal
from rl_cli.cli.slash import COMMANDS

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings

PROMPT = "> "
CONTINUATION = "  "
LEAVE = "Ctrl-C again, or Ctrl-D, leaves the chat"
HISTORY = "chat_history"
"""File in RL_CLI_HOME."""


class ChatInput(Protocol):
    is_seen: bool
    """There is a person who sees what is answered."""

    async def request(self) -> str | None:
        """What was typed, several lines perhaps; None when the person leaves."""
        ...

    def interrupt(self) -> bool:
        """Ctrl-C as a signal. False where nobody waits for input."""
        ...


def can_edit() -> bool:
    """There is a terminal that can show an editable prompt."""
    return is_terminal(sys.stdin, sys.stdout) and os.environ.get("TERM", "dumb") not in ("", "dumb")


class PlainInput:
    """Each line is a request; a backslash at its end goes on with the next line.

    Args:
        lines: Where they come from. On a terminal a prompt is printed before each.
    """

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self.is_seen = is_terminal(sys.stdin, sys.stdout)
        self._warned = False

    async def request(self) -> str | None:
        said: list[str] = []
        while True:
            self._show(CONTINUATION if said else PROMPT)
            try:
                line = await self._lines.line()
            except LineInterrupted:
                if not self.is_seen:
                    raise KeyboardInterrupt from None
                if self._warned and not said:
                    return None
                self._warned, said = not said, []
                self._show(f"\n{LEAVE}\n" if self._warned else "\n")
                continue
            self._warned = False
            if line is None:
                self._show("\n")
                return "\n".join(said) if said else None
            if not line.endswith("\\"):
                return "\n".join([*said, line])
            said.append(line[:-1])

    def interrupt(self) -> bool:
        return self._lines.interrupt()

    def _show(self, text: str) -> None:
        if self.is_seen:
            sys.stdout.write(text)
            sys.stdout.flush()


class EditedInput:
    """A prompt with editing, history and several lines. What others print meanwhile appears above it.

    Args:
        home: RL_CLI_HOME, for the history.
        toolbar: What stands below the prompt, asked about twice a second; empty for nothing.
    """

    def __init__(self, home: Path, toolbar: Callable[[], str]) -> None:
        self._toolbar = toolbar
        self._leaving = False
        self.is_seen = True
        self._session = self._make(home)

    async def request(self) -> str | None:
        from prompt_toolkit.patch_stdout import patch_stdout

        self._leaving = False
        try:
            with patch_stdout(raw=True):
                # SIGINT is ours: prompt_toolkit would take its handler away for good.
                return await self._session.prompt_async(handle_sigint=False)
        except EOFError:
            return None

    def interrupt(self) -> bool:
        running = bool(self._session.app.is_running)
        if running:
            self._session.app.key_processor.send_sigint()
        return running

    def _make(self, home: Path) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.shortcuts import CompleteStyle
        from prompt_toolkit.styles import Style

        names = [f"/{name}" for name in COMMANDS]
        session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=CONTINUATION,
            history=_history(home / HISTORY),
            key_bindings=self._keys(),
            completer=WordCompleter(names, sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            style=Style.from_dict({"bottom-toolbar": "noreverse ansibrightblack"}),
            refresh_interval=0.5,
        )
        session.app.before_render += lambda app: self._show_toolbar(session)
        return session

    def _show_toolbar(self, session: PromptSession[str]) -> None:
        """There is no empty line below the prompt where there is nothing to say."""
        session.bottom_toolbar = (LEAVE if self._leaving else self._toolbar()) or None

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()

        @keys.add("enter")
        def _(event: Any) -> None:
            buffer = event.current_buffer
            if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: Any) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: Any) -> None:
            buffer = event.current_buffer
            if self._leaving and not buffer.text:
                event.app.exit(exception=EOFError)
            self._leaving = not buffer.text
            buffer.reset()

        return keys


def _history(path: Path) -> Any:
    """What was typed in all chats, without its secrets, readable by its owner only."""
    from prompt_toolkit.history import FileHistory

    from rl_cli.core.redaction import redact_text

    class RedactedHistory(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(redact_text(string))

    path.touch(mode=0o600)
    return RedactedHistory(str(path))
