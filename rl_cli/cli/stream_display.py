"""The conversation as plain text, while it happens: text as it is streamed, calls with their durations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TextIO

from environments.agent_loop import AssistantMessage, LoopEvent, ToolFinished, ToolStarted, TurnStarted
from environments.policies.base import Delta, ReasoningDelta, Retrying, TextDelta
from rl_cli.cli.event_lines import call_line, progress_line, result_line, seconds_text
from rl_cli.cli.screen import Screen
from rl_cli.core.redaction import StreamRedactor

QUIET_SECONDS = 10.0
"""A model that sends nothing for so long is said to be waited for, also in the middle of its answer."""
LINE_EVERY_SECONDS = 5.0
"""Where lines cannot be rewritten (a pipe), metrics are printed at most this often."""


class TextDisplay:
    """Plain text to a stream; on a terminal a status line says what is going on and how the run goes.

    Args:
        out: The stream; None is standard output, whatever that is at the moment of writing.
        clock: Seconds.
    """

    def __init__(self, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.screen = Screen(out)
        self._clock = clock
        self.model = "the model"
        """Who answers."""
        self._heard_at = 0.0
        """When the model sent something, or was asked."""
        self._thought = 0
        """Characters of thinking before the message that comes next."""
        self.run_line = ""
        """The run that is to be kept in view, in one line."""
        self._figures = ""
        """The newest figures of a call that works, where no run is in view."""
        self._doing: dict[str, tuple[str, float]] = {}
        """What is going on: id -> (name, since when)."""
        self._streaming = False
        """Text of a message that is not complete has been shown."""
        self._shown = False
        """Text of the message that comes next has been shown."""
        self._redactor = StreamRedactor(at_once=True)
        self._held: list[str] = []
        self._alerts: set[tuple[Any, ...]] = set()
        self._last_state: tuple[Any, ...] = ()
        self._last_metrics = 0.0
        self._paused = False
        self._paused_at = 0.0
        self.in_turn = False

    def notice(self, text: str) -> None:
        """A line about the conversation. It waits for the end of a message that is being streamed."""
        if self._streaming:
            self._held.append(text)
        else:
            self.screen.line(text)

    def aside(self, text: str) -> None:
        """A line that matters less."""
        self.screen.line(text, dim=True)

    def on_event(self, event: LoopEvent) -> None:
        if isinstance(event, TurnStarted):
            self._heard_at, self._thought = self._clock(), 0
            self._doing = {"": ("", self._heard_at)}
        elif isinstance(event, AssistantMessage):
            self._doing.pop("", None)
            self._end_of_message()
            content = event.message.get("content")
            if content and not self._shown:
                self.screen.line("\n" + content)
            self._shown = False
        elif isinstance(event, ToolStarted):
            self._doing[event.call["id"]] = (event.call["function"]["name"], self._clock())
            self.screen.line(f"  {call_line(event.call)}", dim=True)
        elif isinstance(event, ToolFinished):
            record = event.record
            self._doing.pop(record.id, None)
            self._figures = ""
            shown = result_line(record.name, record.ok, record.result, record.seconds)
            self.screen.line(f"  {shown}", dim=record.ok)
        self.tick()

    def on_delta(self, delta: Delta) -> None:
        self._heard_at = self._clock()
        if isinstance(delta, TextDelta):
            self._text(self._redactor.feed(delta.text))
        elif isinstance(delta, ReasoningDelta):
            self._thought += len(delta.text)
            self.tick()
        elif isinstance(delta, Retrying):
            self._thought, cut = 0, self._streaming
            self._end_of_message()
            self._shown = False
            wait = f" in {seconds_text(delta.wait_seconds)}" if delta.wait_seconds else ""
            aside = " What was said above is begun anew." if cut else ""
            reason = delta.reason.rstrip(".")
            again = " Asking again" if reason.endswith("?") else "; asking again"
            self.screen.line(f"  … {reason}{again}{wait}.{aside}", dim=True)

    def on_progress(self, event: dict[str, Any]) -> None:
        line = progress_line(event)
        if line is None or self._known(event):
            return
        if event.get("kind") != "metrics":
            self.notice(f"    {line}")
        elif self.screen.live:
            self._figures = line
            self.tick()
        elif self._clock() - self._last_metrics >= LINE_EVERY_SECONDS:
            self._last_metrics = self._clock()
            self.screen.line(f"    {line}")

    def on_news(self, event: dict[str, Any]) -> None:
        """An alert or the end of the run `event["run"]`, from whoever watches it."""
        line = progress_line(event)
        if line and not self._known(event):
            self.notice(f"{event['run']}  {line}")

    def tick(self) -> None:
        """Brings the status line up to date; called now and then by whoever waits."""
        if not self._paused:
            self.screen.status(self._status(), below=self._streaming and self._is_quiet())

    def pause(self) -> None:
        """No status line from here on: somebody else has the terminal."""
        self._end_of_message()
        self._paused, self._paused_at = True, self._clock()
        self.screen.status("")

    def pause_to_ask(self) -> None:
        """The same, and what other calls of the turn have to say waits for the answer."""
        self.pause()
        self.screen.keep_lines()

    def resume(self) -> None:
        self.screen.show_kept()
        if not self.in_turn:
            self._last_state = ()
        elif self._paused:  # the wait for a person is not the call's
            away = self._clock() - self._paused_at
            self._heard_at += away
            self._doing = {key: (name, since + away) for key, (name, since) in self._doing.items()}
        self._paused, self.in_turn = False, True
        self.tick()

    def end_turn(self) -> None:
        """Nothing is going on any more, however it ended."""
        self._doing.clear()
        self._figures = ""
        self.pause()
        self._shown, self.in_turn = False, False

    def _text(self, piece: str) -> None:
        if not piece:
            return
        if not self._shown:
            self.screen.line("")
        self._streaming = self._shown = True
        self.screen.write(piece)

    def _end_of_message(self) -> None:
        self._text(self._redactor.flush())
        self._streaming = False
        self.screen.fresh_line()
        held, self._held = self._held, []
        for text in held:
            self.screen.line(text)

    def _status(self) -> str:
        parts = [part for part in (self.run_line or self._figures, self._activity()) if part]
        return "  " + " · ".join(parts) if parts else ""

    def _activity(self) -> str:
        now = self._clock()
        seconds = max((int(now - since) for _, since in self._doing.values()), default=0)
        if seconds < 1:
            return ""
        if "" not in self._doing:
            names = [name for name, _ in self._doing.values()]
            return f"{names[0] if len(names) == 1 else f'{len(names)} calls'} {seconds} s"
        if self._is_quiet():
            return f"waiting for {self.model}, {int(now - self._heard_at)} s"
        if self._streaming:
            return ""
        if self._thought:
            return f"{self.model} is thinking, {self._thought:,} characters, {seconds} s"
        return f"waiting for {self.model}, {seconds} s"

    def _is_quiet(self) -> bool:
        return "" in self._doing and self._clock() - self._heard_at >= QUIET_SECONDS

    def _known(self, event: dict[str, Any]) -> bool:
        """News of a run may come from the call that waits and from whoever watches: they are shown once."""
        if event.get("kind") == "state":
            before, self._last_state = self._last_state, (event.get("state"), event.get("reason"))
            return before == self._last_state
        if event.get("kind") != "alert":
            return False
        key = (event.get("time"), event.get("rule"), event.get("message"))
        known = key in self._alerts
        self._alerts.add(key)
        return known
