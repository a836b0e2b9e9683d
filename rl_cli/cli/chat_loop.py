"""The chat's loop: what was typed is a command or a request, until the person leaves."""

from __future__ import annotations

import asyncio
from typing import Any

from rl_cli.cli.chat_input import ChatInput
from rl_cli.cli.conversation import Conversation, why_it_ended
from rl_cli.cli.idle_watch import IdleWatch
from rl_cli.cli.run_watch import RunWatch
from rl_cli.cli.slash import parse
from rl_cli.cli.slash_actions import act
from rl_cli.cli.stream_display import TextDisplay
from rl_cli.core.errors import RlCliError
from rl_cli.core.files import explain_os_error

SHOW_EVERY_SECONDS = 0.5


class ChatLoop:
    """One chat.

    Args:
        conversation: Answers.
        display: Where it is shown.
        typed: Where requests come from.
        watch: The run in view; its line and its news are shown on terminals only.
    """

    def __init__(
        self, conversation: Conversation, display: TextDisplay, typed: ChatInput, watch: RunWatch
    ) -> None:
        self._conversation = conversation
        self._display = display
        self._typed = typed
        self._watch = watch
        self._idle = IdleWatch(conversation)
        self._held: list[dict[str, Any]] = []
        """News that wait whether somebody else tells them."""
        self._worst = 0
        conversation.run_in_view = lambda: watch.run_id

    async def run(self) -> int:
        """Until the person leaves.

        Returns:
            The worst exit code of all turns; on a terminal, where each was seen as it came, 0.
        """
        self._conversation.interrupts.prompt = self._typed.interrupt
        self._conversation.prepare()
        beside = [asyncio.ensure_future(work()) for work in self._beside()]
        self._judge_while_idle()
        try:
            while (line := await self._typed.request()) is not None:
                if line.strip() and await self._answer(line.strip()):
                    break
        finally:
            await self._idle.end()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        return 0 if self._typed.is_seen else self._worst

    async def _answer(self, line: str) -> bool:
        """Whether the person wants to leave."""
        await self._idle.end()
        try:
            if command := parse(line):
                return await act(command, self._conversation)
            result, code = await self._conversation.turn(line)
            self._worst = max(self._worst, code)
            if why := why_it_ended(result):
                self._display.notice(why)
        except (RlCliError, OSError) as error:
            told = explain_os_error(error) if isinstance(error, OSError) else error
            self._display.notice(f"error: {told}")
            self._worst = max(self._worst, told.exit_code)
        self._tell_news()
        self._judge_while_idle()
        return False

    def _judge_while_idle(self) -> None:
        """Where somebody reads what is said meanwhile."""
        if self._display.screen.live:
            self._idle.begin()

    def _beside(self) -> list[Any]:
        return [self._watch.watch, self._show_watched] if self._display.screen.live else []

    async def _show_watched(self) -> None:
        """The run's line during a turn; its news at the prompt, and as soon as a turn has ended."""
        while True:
            await asyncio.sleep(SHOW_EVERY_SECONDS)
            self._display.run_line = self._watch.line
            if not self._display.in_turn:
                self._tell_news()

    def _tell_news(self) -> None:
        news, self._held = [*self._held, *self._watch.take_news()], []
        for event in news:
            ended = event["run"] if event.get("kind") == "state" else None
            if ended and ended == self._idle.watched and ended not in self._idle.told:
                self._held.append(event)  # told with its figures, in a moment
            elif not ended or ended not in self._idle.told:
                self._display.on_news(event)
