"""Judges the session's own run while nobody talks, and speaks up only when there is something to say."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rl_cli.core.errors import RlCliError
from rl_cli.core.messages import assistant

if TYPE_CHECKING:
    from rl_cli.cli.conversation import Conversation
    from rl_cli.monitoring.watching import Watched
    from rl_cli.runs.run_dir import RunDir

LOOK_SECONDS = 1.0


class IdleWatch:
    """Between `begin` and `end` the run that the session started is watched, if it is live.

    What the person is told is recorded as said by the assistant, so that an answer to it is understood.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._task: asyncio.Task[None] | None = None
        self.watched: str | None = None
        """The id of the run whose end will be told here."""
        self.told: set[str] = set()
        """Those whose end was told."""

    def begin(self) -> None:
        self._task = asyncio.ensure_future(self._work())

    async def end(self) -> None:
        """A judgement that is under way is given up, for the next one to make."""
        task, self._task, self.watched = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self) -> None:
        name = self._conversation.assistant.state.get("run_id")
        if not name:
            return
        try:
            await self._watch(str(name))
        except (RlCliError, OSError, ValueError) as error:
            self._conversation.display.notice(f"{name} is no longer judged here: {error}")

    async def _watch(self, name: str) -> None:
        from rl_cli.monitoring.watching import watch
        from rl_cli.runs.state_file import is_over
        from rl_cli.runs.store import find_run
        from rl_cli.tracking.watcher import watching

        helper = self._conversation.assistant
        run = await asyncio.to_thread(find_run, helper.home, name)
        if is_over(run.state()):
            return
        self.watched = run.id
        self.told.discard(run.id)
        judge = helper.judge(helper.session.history.request)

        def on_progress(event: dict[str, Any]) -> None:
            if event.get("kind") == "decision" and event.get("what") == "stop" and "why" in event:
                self._conversation.display.notice(f"{run.id} is being stopped: {event.get('reason')}")

        async with watching(run):
            while True:
                watched = await watch(run, judge, "assistant", None, on_progress, LOOK_SECONDS, end_once=True)
                await self._speak(run, watched)
                if watched.outcome.why == "end":
                    return

    def _text(self, run: RunDir, watched: Watched) -> str:
        """What there is to say; "" for nothing."""
        from rl_cli.monitoring.last_words import end_answer

        decision = watched.decision
        if watched.outcome.why == "end":
            return end_answer(run, decision) if decision else self._ending(run)
        return decision.message or decision.reason if decision else ""

    def _ending(self, run: RunDir) -> str:
        """What became of the run, in the language of the last request."""
        from environments.policies.operator.steps import Result
        from environments.policies.operator.watching import end_text
        from environments.policies.operator.wording import Voice
        from rl_cli.core.json_text import to_json
        from rl_cli.runs.reports.report import results

        found = Result("rl_get_results", to_json({"ok": True, **results(run)}))
        return end_text(found, Voice(self._conversation.assistant.session.history.request))

    async def _speak(self, run: RunDir, watched: Watched) -> None:
        text = await asyncio.to_thread(self._text, run, watched)
        if not text:
            return
        if watched.outcome.why == "end":
            self.told.add(run.id)
        self._conversation.display.notice(f"{run.id}: {text}" if watched.decision else text)
        with suppress(OSError):  # it was said; that it is not on record does no more harm
            self._conversation.assistant.session.record("message", message=assistant(text))
