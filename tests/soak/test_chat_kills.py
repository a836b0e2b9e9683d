"""Fifty chats killed at random moments: each goes on, nothing is executed twice, each file is valid."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.kills import LAST_WORDS, killed_and_resumed, script_in, talk_until

pytestmark = pytest.mark.soak

KILLS = 50


def test_every_killed_chat_comes_to_the_same_end(tmp_path: Path) -> None:
    calm = tmp_path / "calm"
    calm.mkdir()
    started = time.monotonic()
    code, out = talk_until(calm / "home", script_in(calm), None)
    assert (code, LAST_WORDS in out) == (0, True), out
    seconds = time.monotonic() - started
    kills, seed, moments = 0, 1000, Counter[str]()
    while kills < KILLS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = killed_and_resumed(folder, seed, seconds)
        kills, seed = kills + trial.kills, seed + 1
        moments[trial.cut_off] += 1
    print(f"\n{kills} kills in {seed - 1000} conversations of about {seconds:.1f} s each")
    print(f"the file ended with: {dict(moments)}")
