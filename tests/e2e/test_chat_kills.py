"""A chat that is killed goes on where it was; the soak does more of the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.kills import LAST_WORDS, killed_and_resumed, script_in, talk_until

KILLS = 4


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long the conversation takes undisturbed."""
    folder = tmp_path_factory.mktemp("calm")
    started = time.monotonic()
    code, out = talk_until(folder / "home", script_in(folder), None)
    assert (code, LAST_WORDS in out) == (0, True), out
    return time.monotonic() - started


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_chat_goes_on_and_nothing_is_started_twice(
    tmp_path: Path, seed: int, seconds: float
) -> None:
    killed_and_resumed(tmp_path, seed, seconds)
