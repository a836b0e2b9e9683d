"""`rl-cli monitor`: does the checks of all live runs without a chat, until it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rl_cli.cli.app import JsonOption, run_async, single
from rl_cli.cli.ask import AddressOption, ModelOption
from rl_cli.cli.event_lines import progress_line
from rl_cli.core.cuts import one_line
from rl_cli.core.json_text import to_json
from rl_cli.core.printable import printable, printable_json
from rl_cli.core.redaction import redact

if TYPE_CHECKING:
    from rl_cli.cli.answerer import Answerer
    from rl_cli.core.settings import Settings
    from rl_cli.monitoring.host import JudgeOf
    from rl_cli.monitoring.telling import Tell
    from rl_cli.runs.run_dir import RunDir

STANDBY_SECONDS = 5.0
THREADS = 64
"""Files that do not answer hold one each."""

app = single()


@app.command()
def monitor(
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, then end; for cron.")] = False,
    model: ModelOption = None,
    base_url: AddressOption = None,
    json_: JsonOption = False,
) -> None:
    """Judge all live runs at their checks, at alerts and at the end, and stop those that go wrong.

    Exit code with --once: 1 if a run needs a person. Without it: 0 when it is told to end (SIGTERM).
    """
    from rl_cli.cli.answerer import choose
    from rl_cli.core.settings import ensure_home, load_settings

    settings = load_settings({"model": model})
    home = ensure_home()
    answerer = choose(model, base_url, settings)
    tell = _json_line if json_ else _text_line
    work = _once if once else _until_told
    if code := run_async(work(home, _judges(home, settings, answerer), tell, answerer.who)):
        raise typer.Exit(code)


async def _once(home: Path, judge_of: JudgeOf, tell: Tell, who: str) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from rl_cli.monitoring.heartbeat import only_monitor
    from rl_cli.monitoring.once import Once

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    with only_monitor(home) as mine:
        if not mine:
            tell("", {"kind": "monitor", "what": "another monitor does the checks"})
            return 0
        once = Once(home, judge_of, tell)
        code = 1 if await once.look() else 0
    if once.given_up:
        _leave(code)
    return code


async def _until_told(home: Path, judge_of: JudgeOf, tell: Tell, who: str) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from rl_cli.monitoring.heartbeat import take_place
    from rl_cli.monitoring.host import Host
    from rl_cli.monitoring.systemd import notify

    loop, main = asyncio.get_running_loop(), asyncio.current_task()
    assert main
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    loop.add_signal_handler(signal.SIGTERM, main.cancel)
    told, hosts = False, list[Host]()
    notify("READY=1")
    try:
        while True:
            notify("WATCHDOG=1")
            mine, before = take_place(home)
            if mine:
                hangs = before and before.state == "hangs"
                instead = f" in place of pid {before.pid}, which hangs" if before and hangs else ""
                tell("", {"kind": "monitor", "what": f"watching the runs of {home}{instead}; {who} judges"})
                hosts.append(Host(home, judge_of, tell))
                await hosts[-1].run(before)
                told = False
            if not told:
                tell("", {"kind": "monitor", "what": "another monitor does the checks; standing by"})
                told = True
            await asyncio.sleep(STANDBY_SECONDS)
    except asyncio.CancelledError:
        tell("", {"kind": "monitor", "what": "told to end"})
        if any(host.unanswered for host in hosts):
            _leave(0)
        return 0


def _leave(code: int) -> NoReturn:
    """Ends without waiting for threads that read what does not answer."""
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(code)


def _judges(home: Path, settings: Settings, answerer: Answerer) -> JudgeOf:
    """Who judges a run; what that costs is counted as the run's."""
    from functools import partial

    from environments.policies.base import Bounds
    from rl_cli.agent.judge import ModelJudge
    from rl_cli.agent.models import OPERATOR
    from rl_cli.spending.meter import SessionMeter

    if answerer.policy.name == OPERATOR:
        return lambda run: None
    endpoint = answerer.endpoint
    address = endpoint.base_url if endpoint else None

    def judge_of(run: RunDir) -> ModelJudge:
        payer = f"monitor-{run.id}"
        meter = SessionMeter.open(home, settings, payer, address, run_id=run.id)
        return ModelJudge(answerer.policy, partial(Bounds, meter), payer)

    return judge_of


def _json_line(run_id: str, event: dict[str, Any]) -> None:
    from rl_cli.runs.times import now_text

    with suppress(BrokenPipeError):
        row = {"time": now_text(), "run": run_id or None, **event}
        print(printable_json(to_json(redact(row))), flush=True)


def _text_line(run_id: str, event: dict[str, Any]) -> None:
    from rl_cli.runs.times import now_text

    when = str(event.get("time") or now_text())
    text = "  ".join(part for part in (when[:19] + "Z", run_id, event_text(event)) if part)
    with suppress(BrokenPipeError):
        print(printable(text.rstrip(": ")), flush=True)


def event_text(event: dict[str, Any]) -> str:
    """An event on one line, with its reason where it has one."""
    line, said = progress_line(event), event.get("what") or event.get("message") or ""
    if event["kind"] == "live":
        return str(said)
    if event["kind"] == "end" and event.get("said"):
        return f"end: {said} {event.get('by')}: {one_line(str(event['said']), 400)}"
    if event["kind"] == "decision" and line is None:
        by, reason = event.get("by"), event.get("reason")
        return one_line(f"decision ({by}): {said}" + (f", {reason}" if reason else ""), 400)
    return line or f"{event['kind']}: {said}"
