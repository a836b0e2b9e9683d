"""The smoke test before a training: a few groups of rollouts, in a child process, with progress."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl_cli.config.tree import RunConfig
from rl_cli.config.warm_start import STARTING
from rl_cli.core.cuts import head
from rl_cli.core.errors import BadUsage, Refused, RlCliError, WorkFailed
from rl_cli.core.extras import require_extra
from rl_cli.core.files import explain_os_error, read_json, write_json
from rl_cli.core.own_process import provider_keys
from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module

WARM_START = "warm start"
"""The phase in which it is trained."""
LINE_LIMIT = 1 << 20


async def test_inference(  # no test: the name is the tool's
    config: RunConfig,
    models: list[str] | None,
    tasks: int,
    group_size: int,
    out_dir: Path,
    on_progress: Callable[[dict[str, Any]], None] | None = None,  # noqa: PT028
    session: str | None = None,  # noqa: PT028
) -> dict[str, Any]:
    """Rolls out groups on validation tasks at the config's temperature.

    Args:
        config: Names the environment, the model and the limits of a rollout.
        models: "starting checkpoint" (also None), run:RUN_ID, a folder, a Hugging Face name, provider/name.
        tasks: Groups per model.
        group_size: Rollouts per group.
        out_dir: A new file is made in it each time.
        on_progress: Gets {"kind": "phase"|"metrics", ...} as it goes.
        session: Of the conversation that asks: it pays for requests to endpoints.

    Returns:
        {"file", "results": [{"model", "accuracy", "tasks", "rollouts", "groups_without_signal",
        "parse_failures", "errors", "mean_tokens", "samples"}], "seconds", "warm_start_seconds"}; shares lie
        between 0 and 1. Of the seconds, warm_start_seconds went into training the warm start: 0 where it was
        there already.

    Raises:
        RlCliError: As the child found it. Cancelling ends the child with all that it started.
    """
    require_extra("train")
    started = time.monotonic()
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        file = _new_file(out_dir, config.environment.name)
        request = {
            "config": config.model_dump(),
            "models": models or [STARTING],
            "tasks": tasks,
            "group_size": group_size,
            "home": str(out_dir.parent),
            "session": session,
        }
        write_json(file, {"request": request})
    except OSError as error:
        raise explain_os_error(error, out_dir) from error
    clock = _PhaseClock(on_progress or (lambda event: None))
    try:
        results = await _in_child(file, models or [STARTING], clock)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    answer = {
        "file": str(file),
        "results": results,
        "seconds": round(time.monotonic() - started, 1),
        "warm_start_seconds": round(clock.seconds.get(WARM_START, 0.0), 1),
    }
    write_json(file, {"request": request, **answer})
    return answer


class _PhaseClock:
    """Passes progress on, and takes the time of each phase."""

    def __init__(self, on_progress: Callable[[dict[str, Any]], None]) -> None:
        self.pass_on = on_progress
        self.seconds: dict[str, float] = {}
        self._now: tuple[str, float] | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        if event["kind"] == "phase":
            if self._now:
                name, began = self._now
                self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
            self._now = (str(event["name"]), time.monotonic())
        self.pass_on(event)


def _new_file(folder: Path, name: str) -> Path:
    """A file that did not exist, and now does."""
    stem = time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + f"-{name}"
    for number in range(1, 1000):
        file = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            continue
        return file
    raise FileExistsError(f"a thousand files named {stem}")


def keys_of(models: list[str]) -> set[str]:
    """The variables with the keys of those models that are endpoints; the child gets no other provider's."""
    from rl_cli.agent.models import PROVIDERS
    from rl_cli.core.settings import load_settings

    configured = load_settings().endpoints
    keys = set()
    for provider in (model.partition("/")[0] for model in models):
        known = PROVIDERS.get(provider)
        keys.add(configured.get(provider, {}).get("key_env") or (known.key_env if known else None))
    return {key for key in keys if key}


async def _in_child(
    file: Path, models: list[str], on_progress: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """Runs the worker on a request file. Its stdout is one JSON object per line, the last one the outcome."""
    hidden = provider_keys(os.environ, keep=keys_of(models))
    process = await asyncio.create_subprocess_exec(
        *python_module("rl_cli.training.inference_worker", str(file)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name not in hidden},
    )
    identity = ProcessIdentity.of(process.pid)
    assert process.stdout
    assert process.stderr
    complaints = asyncio.create_task(_tail(process.stderr))
    outcome: dict[str, Any] = {}
    try:
        async for line in process.stdout:
            event = json.loads(line)
            if event["kind"] == "outcome":
                outcome = event
            else:
                on_progress(event)
        await process.wait()
    finally:
        if process.returncode is None:
            await asyncio.shield(asyncio.to_thread(kill_tree, identity, 1.0))
        complaints.cancel()
    if "results" in outcome:
        results: list[dict[str, Any]] = outcome["results"]
        return results
    if error := outcome.get("error"):
        kinds: dict[int, type[RlCliError]] = {2: BadUsage, 3: Refused}
        raise kinds.get(error["exit_code"], WorkFailed)(error["message"], error["hint"])
    last = complaints.result() if complaints.done() and not complaints.cancelled() else ""
    raise WorkFailed(
        f"the inference test ended with exit code {process.returncode}: {last or 'no reason given'}"
    )


async def _tail(stream: asyncio.StreamReader) -> str:
    """The last line that is not empty; reads to the end, so that the child never waits for room."""
    lines: deque[str] = deque(maxlen=1)
    while chunk := await stream.readline():
        if text := chunk.decode("utf-8", "replace").strip():
            lines.append(head(text, 500))
    return lines[0] if lines else ""


def read_request(file: Path) -> dict[str, Any]:
    request: dict[str, Any] = read_json(file)["request"]
    return request
