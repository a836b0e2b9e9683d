"""A conversation at the command line: who answers, who is asked, who pays, what is shown."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.agent_loop import StopReason
from environments.policies.base import Bounds, BudgetExhausted, PolicyError
from rl_cli.agent.approvals import Approvals
from rl_cli.agent.assistant import Assistant, TurnResult
from rl_cli.agent.models import OPERATOR
from rl_cli.cli.answerer import ADDRESS, Answerer, Preparation, choose
from rl_cli.cli.display import Display
from rl_cli.cli.interrupts import Interrupts
from rl_cli.cli.line_reader import LineReader
from rl_cli.cli.question import Questions, can_ask
from rl_cli.cli.terminal_mode import terminal_mode
from rl_cli.core.errors import Refused, WorkFailed

if TYPE_CHECKING:
    from rl_cli.agent.session_file import SessionFile
    from rl_cli.core.settings import Settings

TICK_SECONDS = 0.5


@dataclass(frozen=True)
class Flags:
    """What the command line says of a conversation."""

    model: str | None = None
    base_url: str | None = None
    seed: int | None = None
    yes: bool = False
    session: str | None = None
    """The one to go on with: an id, a unique beginning of one, or "latest"."""


class Conversation:
    """One session that is open here, with everything around it."""

    def __init__(
        self,
        assistant: Assistant,
        approvals: Approvals,
        answerer: Answerer,
        display: Display,
        interrupts: Interrupts,
        settings: Settings,
    ) -> None:
        self.assistant = assistant
        self.approvals = approvals
        self.display = display
        self.interrupts = interrupts
        self._told_of: str | None = None
        """The run of which was said that it goes on."""
        self.settings = settings
        self.run_in_view: Callable[[], str | None] = lambda: None
        """The id of the run that a line on the screen is about."""
        self.change_answerer(answerer)
        assistant.bounds = self._bounds

    def change_answerer(self, answerer: Answerer) -> None:
        """From the next turn on; also who pays changes, since prices depend on the address."""
        from rl_cli.spending.meter import SessionMeter

        self.answerer = answerer
        if answerer.policy.name != OPERATOR and self.assistant.workspace is None:
            self._open_workspace()
        self.display.model = answerer.policy.name
        self._preparation: Preparation | None = None
        endpoint = answerer.endpoint
        self.meter = SessionMeter.open(
            self.assistant.home,
            self.settings,
            self.assistant.session.id,
            endpoint.base_url if endpoint else None,
            on_warning=self.display.notice,
        )

    def _open_workspace(self) -> None:
        """The built-in operator needs none, and it takes a moment."""
        from rl_cli.agent.workspace import open_workspace

        workspace = open_workspace(Path.cwd(), self.assistant.home)
        self.assistant.move_into(workspace)
        for note in workspace.notes:
            self.display.notice(note)

    def wait_for_person(self) -> None:
        """Time that passes from here on is not the assistant's work."""
        self.meter.pause()

    def go_on_working(self) -> None:
        """The person has answered."""
        self.meter.resume()

    def prepare(self) -> Preparation:
        """Begins what takes a while before the first request, unless it has begun."""
        self._preparation = self._preparation or Preparation(self.answerer)
        return self._preparation

    async def turn(self, request: str) -> tuple[TurnResult | None, int]:
        """Answers one request.

        Returns:
            What came of it (None if it was cancelled), and the exit code that this means.

        Raises:
            Refused: The budget of hours is used up.
            WorkFailed: What is spent cannot be recorded.
        """
        run_before, self._told_of = self.assistant.state.get("run_id"), None
        ticking = asyncio.ensure_future(self._tick())
        self.display.resume()
        try:
            with terminal_mode("silent"):
                result = await self.interrupts.turn(self._answer(request))
        except BudgetExhausted as error:
            raise Refused(str(error)) from error
        except PolicyError as error:
            raise WorkFailed(str(error)) from error
        finally:
            self.meter.turn_ended()
            ticking.cancel()
            self.display.end_turn()
        if result is None or result.stop is StopReason.INTERRUPTED:
            self.display.notice("Interrupted.")
        if result is None or self.interrupts.presses or result.stop is StopReason.INTERRUPTED:
            run = self.assistant.state.get("run_id")
            if result and run and f"rl-cli runs watch {run}" in result.text:
                self._told_of = run
            self.say_what_goes_on()
            return result, 130
        run = self.assistant.state.get("run_id")
        return result, exit_code(result, run != run_before and _run_failed(self.assistant.home, run))

    async def compact(self) -> str:
        """Summarises the older turns now. Returns why nothing was done, in one line, else ""."""
        self.assistant.change_model(self.answerer.policy, await self.prepare().window())
        with terminal_mode("silent"):
            said = await self.interrupts.turn(self.assistant.compact())
        return "interrupted: nothing was changed" if said is None else said

    async def _answer(self, request: str) -> TurnResult:
        self.assistant.change_model(self.answerer.policy, await self.prepare().window())
        self.meter.turn_started()
        self.assistant.state[ADDRESS] = self.answerer.address
        return await self.assistant.turn(request)

    def _bounds(self) -> Bounds:
        seconds = self.meter.seconds_left()
        return Bounds(self.meter, None if seconds is None else time.monotonic() + seconds)

    def say_what_goes_on(self) -> None:
        """A conversation that is interrupted or left leaves its run alone, and says so, once for each run."""
        from rl_cli.runs.state_file import LIVE
        from rl_cli.runs.store import find_run

        run = self.assistant.state.get("run_id")
        with contextlib.suppress(Exception):  # the run was deleted meanwhile, or the terminal is gone
            if run and run != self._told_of and find_run(self.assistant.home, run).state()["state"] in LIVE:
                how = f"watch it: rl-cli runs watch {run}; stop it: rl-cli runs stop {run}"
                self._told_of = run
                self.display.notice(f"Run {run} goes on by itself; {how}")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.display.tick()


def say_how_to_go_on(conversation: Conversation, from_ask: bool = False) -> None:
    """Where something was said that can be gone on with."""
    session = conversation.assistant.session
    if session.path.exists():
        with contextlib.suppress(OSError):  # the terminal is gone
            ask = f', or rl-cli ask "..." --session {session.id}' if from_ask else ""
            conversation.display.notice(f"To go on: rl-cli chat --resume {session.id}{ask}")


def exit_code(result: TurnResult, run_failed: bool) -> int:
    """0 done, 1 failed or not done, 3 refused, 130 interrupted."""
    if result.stop is StopReason.INTERRUPTED:
        return 130
    if result.refused or result.stop is StopReason.BUDGET:
        return 3
    if result.stop is not StopReason.FINISHED:
        return 1
    return 1 if run_failed else 0


def why_it_ended(result: TurnResult | None) -> str | None:
    """One line for a person where a turn ended early by itself, else None."""
    quiet = (StopReason.FINISHED, StopReason.DECLINED, StopReason.INTERRUPTED)
    if result is None or result.stop in quiet:
        return None
    return result.reason or f"the turn ended early: {result.stop.value}"


def end_fields(result: TurnResult | None, session: SessionFile) -> dict[str, Any]:
    """The last event of `ask --json`."""
    usage = asdict(result.usage) if result else {}
    return {
        "stop": result.stop.value if result else StopReason.INTERRUPTED.value,
        "error": result.reason if result else None,
        "session": session.id,
        "usage": usage,
        "dollars": usage.pop("dollars", 0.0),
    }


@asynccontextmanager
async def converse(flags: Flags, display: Display, lines: LineReader) -> AsyncIterator[Conversation]:
    """Opens the session and says who answers.

    Raises:
        BadUsage: The model, the session or a setting is wrong.
    """
    from rl_cli.agent.session_store import new_session, open_session
    from rl_cli.core.settings import ensure_home, load_settings
    from rl_cli.spending.gate import why_not

    settings = load_settings({"model": flags.model, "seed": flags.seed})
    home = ensure_home()
    session = open_session(home, flags.session) if flags.session is not None else None
    try:
        answerer = choose(flags.model, flags.base_url, settings, session.history if session else None)
        display.notice(answerer.notice)
        session = session or new_session(home, answerer.policy.name)
        interrupts = Interrupts(lines)
        questions = Questions(display, lines, interrupts.event)
        approvals = Approvals(
            settings.approvals,
            yes=flags.yes,
            interactive=can_ask(),
            ask=questions.ask,
            home=home,
            budget_left=partial(why_not, home, settings, session.id),
        )
        assistant = Assistant(
            policy=answerer.policy,
            home=home,
            session=session,
            approve=approvals,
            on_event=display.on_event,
            on_progress=display.on_progress,
            on_delta=display.on_delta,
            on_notice=display.notice,
            interrupted=interrupts.event,
            seed=settings.seed,
        )
        conversation = Conversation(assistant, approvals, answerer, display, interrupts, settings)
        questions.on_wait, questions.on_answer = conversation.wait_for_person, conversation.go_on_working
    except BaseException:
        if session:
            session.close()
        raise
    try:
        yield conversation
    except asyncio.CancelledError:  # SIGTERM, SIGHUP
        conversation.say_what_goes_on()
        raise
    finally:
        await assistant.close()


def _run_failed(home: Path, run: str | None) -> bool:
    from rl_cli.runs.outcome import is_incomplete
    from rl_cli.runs.store import find_run

    return bool(run) and is_incomplete(find_run(home, str(run)).state())
