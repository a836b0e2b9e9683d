"""How a batch is going, in a few figures, and waiting until that is worth telling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.files import read_json
from rl_cli.data.batch.folder import BatchFolder, list_batches
from rl_cli.data.compression.journal import folder_of
from rl_cli.data.jobs.compressing import output_of
from rl_cli.data.jobs.job import BUSY, KINDS, Job, worker_of
from rl_cli.runs.logs import last_lines
from rl_cli.runs.times import time_text

LOOK_SECONDS = 0.5
PROGRESS_SECONDS = 15.0
CHECK_SECONDS = 1800.0
"""A wait ends after so long, so that somebody looks whether it is worth going on."""
LONGEST_REASON = 500
LOG_LINES = 5
OTHERS = 10
COUNTED = ("items", "expected", "done", "failed", "in_flight")
COMPRESSED = ("rows", "compressed", "fits", "cannot_fit", "failed", "calls", "cost_usd", "output")

OnProgress = Callable[[dict[str, Any]], None]


def batch_status(folder: BatchFolder) -> dict[str, Any]:
    """The batch as it is now; what is not known is left out.

    Returns:
        {"name", "dir", "state", "reason", "items", "expected", "done", "failed", "in_flight", "cost_usd",
        "seconds", "trouble"}: `expected` are the samples of all items; `state` is `merging` between the last
        sample and the rows; `trouble` is the latest error, until something goes well again.
        After a merge `merged` and `discarded`; after a compression was begun `compression`; the end of the
        log where it failed.
    """
    state, job = folder.state(), Job(folder, "generate").state()
    shown = {name: state[name] for name in COUNTED if state.get(name) is not None}
    began, ended = state.get("started"), state.get("ended")
    if _number(began):
        shown["seconds"] = round((_number(ended) or time.time()) - _number(began))
    compressing = _compression(folder)
    now = _state(state, job)
    failed = now == "failed" or compressing.get("state") == "failed"
    return {
        "name": folder.name,
        "dir": str(folder.path),
        "state": now,
        "reason": one_line(str(_reason(state, job) or ""), LONGEST_REASON) or None,
        **shown,
        "cost_usd": _number(state.get("spend")),
        **({"trouble": trouble} if (trouble := state.get("trouble")) else {}),
        **_merged(folder),
        **({"compression": compressing} if compressing else {}),
        **({"log": _log(folder)} if failed else {}),
    }


def listed() -> list[dict[str, Any]]:
    """All batches, newest first, in a few figures; None for what is not known.

    Returns:
        {"name", "state", "reason", "done", "expected", "failed", "cost_usd", "started", "ended", "dir"}:
        `state` as of batch_status(), times as those of runs.
    """
    return [_listed(batch) for batch in newest_first()]


def _listed(folder: BatchFolder) -> dict[str, Any]:
    state, shown = folder.state(), batch_status(folder)
    return {
        **{name: shown.get(name) for name in ("name", "state", "reason", "done", "expected", "failed")},
        "cost_usd": shown["cost_usd"],
        **{
            name: time_text(at) if (at := _number(state.get(name))) else None for name in ("started", "ended")
        },
        "dir": shown["dir"],
    }


def newest_first() -> list[BatchFolder]:
    """All batches, the one that was begun or gone on with last before the others."""
    return sorted(list_batches(), key=lambda batch: _number(batch.state().get("started")), reverse=True)


def other_batches(folder: BatchFolder) -> list[dict[str, str]]:
    """The newest batches beside this one: {"name", "state"}."""
    others = [batch for batch in newest_first() if batch.name != folder.name][:OTHERS]
    return [
        {"name": batch.name, "state": _state(batch.state(), Job(batch, "generate").state())}
        for batch in others
    ]


async def wait_for_batch(
    folder: BatchFolder, interrupted: asyncio.Event | None = None, on_progress: OnProgress | None = None
) -> str:
    """Waits until nobody works on the batch any more.

    Args:
        folder: The batch's.
        interrupted: Set by whoever wants the wait to end.
        on_progress: Told of the state when it has changed, a few times a minute at most.

    Returns:
        Why the wait ended: "end", "interrupted", or "due" after CHECK_SECONDS.
    """
    interrupted = interrupted or asyncio.Event()
    until, told_at, told = time.monotonic() + CHECK_SECONDS, 0.0, ""
    while await asyncio.to_thread(worker_of, folder) is not None:
        if interrupted.is_set():
            return "interrupted"
        if time.monotonic() > until:
            return "due"
        if on_progress and time.monotonic() - told_at > PROGRESS_SECONDS:
            told_at, line = time.monotonic(), _line(await asyncio.to_thread(batch_status, folder))
            if line != told:
                on_progress({"kind": "state", "state": "running", "reason": line})
                told = line
        with suppress(TimeoutError):
            await asyncio.wait_for(interrupted.wait(), LOOK_SECONDS)
    return "end"


def _state(state: dict[str, Any], job: dict[str, Any]) -> str:
    if job.get("state") == "starting":
        return "starting"
    if job.get("state") in BUSY and state.get("state") not in (None, "running"):
        return "merging"
    if _is_later(job, state) or _is_unmerged(job, state):
        return str(job["state"])
    return str(state.get("state") or job.get("state") or "not begun")


def _reason(state: dict[str, Any], job: dict[str, Any]) -> Any:
    if _is_unmerged(job, state):
        return f"{job['reason']}, before its rows were merged"
    return job.get("reason") if _is_later(job, state) else state.get("reason")


def _is_later(job: dict[str, Any], state: dict[str, Any]) -> bool:
    """Whether a start of it has failed since: before its first sample, or in the merge."""
    seen = _number(state.get("ended")) or _number(state.get("started"))
    return job.get("state") == "failed" and _number(job.get("ended")) >= seen


def _is_unmerged(job: dict[str, Any], state: dict[str, Any]) -> bool:
    """Whether its process was killed between the last sample and the rows."""
    killed = job.get("state") == "stopped" and "ended" not in job
    return killed and _number(state.get("ended")) >= _number(job.get("started"))


def _number(value: Any) -> float:
    """A figure of a file; 0 where it is none."""
    return value if isinstance(value, int | float) else 0


def _merged(folder: BatchFolder) -> dict[str, Any]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = read_json(folder.statistics)
        return {"merged": found["merged"], "discarded": found["discarded"]}
    return {}


def _compression(folder: BatchFolder) -> dict[str, Any]:
    job = Job(folder, "compress").state()
    if not job:
        return {}
    report: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        report = read_json(folder_of(output_of(folder)) / "report.json")
    shown = {name: report[name] for name in COMPRESSED if name in report}
    return {"state": job["state"], "reason": job.get("reason"), **shown}


def _log(folder: BatchFolder) -> list[str]:
    """The end of the log of whichever work failed last."""
    logs = [Job(folder, kind).log for kind in KINDS]
    known = [log for log in logs if log.exists()]
    newest = max(known, key=lambda log: log.stat().st_mtime, default=None)
    return [one_line(line, LONGEST_REASON) for line in last_lines(newest, LOG_LINES)] if newest else []


def _line(status: dict[str, Any]) -> str:
    if (compression := status.get("compression", {})).get("state") in BUSY:
        return f"compressing, {compression.get('rows', 0)} rows so far"
    of = f" of {status['expected']}" if "expected" in status else ""
    failed = f", {status['failed']} failed" if status.get("failed") else ""
    trouble = f"; latest error: {status['trouble']}" if "trouble" in status else ""
    done = f"{status['name']}: {status.get('done', 0)}{of} samples{failed}, ${status['cost_usd']:.4f}"
    return done + trouble
