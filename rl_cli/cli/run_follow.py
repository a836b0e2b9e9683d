"""`rl-cli runs watch`: a run as it goes, until it is over."""

from __future__ import annotations

import sys
import time
from typing import Any

import typer

from rl_cli.cli.display import JsonDisplay, TextDisplay
from rl_cli.cli.live_watch import LiveWatch, is_live_terminal
from rl_cli.cli.output import say
from rl_cli.runs.follow import Follower, must_exist
from rl_cli.runs.outcome import about, did_its_work, text_summary
from rl_cli.tracking.watcher import Watcher, watched

LOOK_EVERY_SECONDS = 0.25


def watch_run(run: Any, as_json: bool) -> None:
    """Shows what happens: a block that is repainted on a terminal, else a line per event.

    Args:
        run: A RunDir.
        as_json: One JSON object per event.

    Raises:
        typer.Exit: 1 if the run did not do its work, 130 on Ctrl-C, which leaves it alone.
        WorkFailed: Its directory was deleted meanwhile.
    """
    try:
        with watched(run, checked_elsewhere=True) as watcher:
            if watcher and not watcher.caught_up.wait(1):
                print("reading the run's history from W&B ...", file=sys.stderr)
                watcher.caught_up.wait()
            follower = _follow(run, as_json, watcher)
    except KeyboardInterrupt:
        print(f"\n{run.id} goes on without you; rl-cli runs stop {run.id} ends it", file=sys.stderr)
        raise typer.Exit(130) from None
    if not as_json:
        say(text_summary(run))
    if not did_its_work(follower.state):
        raise typer.Exit(1)


def _follow(run: Any, as_json: bool, watcher: Watcher | None) -> Follower:
    """Until the run is over."""
    follower = Follower(run, judged_only=True, feed=watcher.feed if watcher else None)
    display: LiveWatch | _Lines
    live = is_live_terminal() and not as_json
    display = LiveWatch(follower) if live else _Lines(None if as_json else _header(follower))
    while True:
        news = follower.news()
        must_exist(run)
        display.show(news)
        if watcher:
            watcher.check(follower.progress)
        if follower.over and not (watcher and watcher.goes_on):
            break
        time.sleep(LOOK_EVERY_SECONDS)
    display.end_turn()
    return follower


def _header(follower: Follower) -> str:
    """Which run the lines are about; its attempt where it was resumed."""
    attempt = follower.state.get("attempt") or 1
    told = [*about(follower.run.summary()), *([f"attempt {attempt}"] if attempt > 1 else [])]
    return f"{follower.run.id}: {', '.join(told)}"


class _Lines:
    """A line per event, below a header: on a pipe. Without a header as JSON."""

    def __init__(self, header: str | None) -> None:
        self._header = header
        self._display = JsonDisplay(sys.stdout) if header is None else TextDisplay(sys.stdout)

    def show(self, news: list[dict[str, Any]]) -> None:
        if self._header:
            say(self._header)
            self._header = None
        for event in news:
            self._display.on_progress(event)

    def end_turn(self) -> None:
        self._display.end_turn()
