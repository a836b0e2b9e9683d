"""`rl-cli ask "..."`: one request, answered with tools."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.app import JsonOption, YesOption, run_async, single
from rl_cli.core.errors import BadUsage, WorkFailed

if TYPE_CHECKING:
    from environments.policies.base import Policy
    from rl_cli.cli.display import Display


app = single()


@app.command()
def ask(
    request: Annotated[list[str], typer.Argument(help="What to do, in English or Chinese.")],
    yes: YesOption = False,
    model: Annotated[str | None, typer.Option(help="Who answers: provider/name.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the runs that are started.")] = None,
    json_: JsonOption = False,
) -> None:
    """Ask the assistant for something, such as "train a GSM8K model"."""
    from rl_cli.agent.models import choose_model, resolve_policy
    from rl_cli.cli.display import choose_display
    from rl_cli.core.settings import ensure_home, load_settings

    text = " ".join(request).strip()
    if not text:
        raise BadUsage("the request is empty", 'for example: rl-cli "train a GSM8K model"')
    settings = load_settings({"model": model, "seed": seed})
    choice = choose_model(settings.model)
    policy = resolve_policy(choice.name)
    home = ensure_home()
    display = choose_display(json_)
    display.notice(choice.notice)
    code = run_async(_answer(text, policy, home, display, yes, settings.seed))
    if code:
        raise typer.Exit(code)


async def _answer(
    request: str, policy: Policy, home: Path, display: Display, yes: bool, seed: int | None
) -> int:
    """Returns the exit code."""
    from environments.agent_loop import StopReason
    from rl_cli.agent.approvals import make_approver
    from rl_cli.agent.assistant import Assistant
    from rl_cli.agent.session_store import new_session

    interrupted = asyncio.Event()
    presses = 0
    task = asyncio.current_task()
    assert task

    def on_interrupt() -> None:
        """The first Ctrl-C ends a wait, or else the turn; the second ends the conversation at once."""
        nonlocal presses
        presses += 1
        if presses > 1:
            task.cancel()
        interrupted.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    for end in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(end, task.cancel)
    assistant = Assistant(
        policy=policy,
        home=home,
        session=new_session(home, policy.name),
        approve=make_approver(yes=yes, interactive=sys.stdin.isatty() and sys.stdout.isatty()),
        on_event=display.on_event,
        on_progress=display.on_progress,
        interrupted=interrupted,
        seed=seed,
    )
    try:
        result = await assistant.turn(request)
    except asyncio.CancelledError:
        _say_what_goes_on(assistant.state.get("run_id"), display)
        raise KeyboardInterrupt from None
    if presses:
        _say_what_goes_on(assistant.state.get("run_id"), display)
        return 130
    if assistant.state.get("refused"):
        return 3
    if result.stop is StopReason.DECLINED:
        return 1
    if result.stop is not StopReason.FINISHED:
        raise WorkFailed(f"the conversation ended early: {result.stop.value}", result.reason)
    if result.calls and not result.calls[-1].ok:
        return 1
    return 1 if _run_failed(assistant.state.get("run_id")) else 0


def _say_what_goes_on(run_id: str | None, display: Display) -> None:
    """An interrupted conversation leaves its run alone, and says so."""
    from rl_cli.core.settings import home
    from rl_cli.runs.state_file import LIVE
    from rl_cli.runs.store import find_run

    if run_id and find_run(home(), run_id).state()["state"] in LIVE:
        how = f"watch it: rl-cli runs watch {run_id}; stop it: rl-cli runs stop {run_id}"
        display.notice(f"Run {run_id} goes on by itself; {how}")


def _run_failed(run_id: str | None) -> bool:
    """Did the run that this conversation started fail?"""
    from rl_cli.core.settings import home
    from rl_cli.runs.store import find_run

    return bool(run_id) and find_run(home(), str(run_id)).summary()["state"] in ("failed", "lost")
