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
from rl_cli.runs.outcome import is_incomplete, text_summary

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
    follower = Follower(run)
    display: LiveWatch | _Lines
    display = LiveWatch(follower) if is_live_terminal() and not as_json else _Lines(as_json)
    try:
        while True:
            news = follower.news()
            must_exist(run)
            display.show(news)
            if follower.over:
                break
            time.sleep(LOOK_EVERY_SECONDS)
    except KeyboardInterrupt:
        print(f"\n{run.id} goes on without you; rl-cli runs stop {run.id} ends it", file=sys.stderr)
        raise typer.Exit(130) from None
    display.end_turn()
    if not as_json:
        say(text_summary(run))
    if is_incomplete(follower.state):
        raise typer.Exit(1)


class _Lines:
    """A line per event: on a pipe, or as JSON."""

    def __init__(self, as_json: bool) -> None:
        self._display = JsonDisplay(sys.stdout) if as_json else TextDisplay(sys.stdout)

    def show(self, news: list[dict[str, Any]]) -> None:
        for event in news:
            self._display.on_progress(event)

    def end_turn(self) -> None:
        self._display.end_turn()
