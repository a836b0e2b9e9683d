from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.training.replay_file import BUNDLED, find_file, read_play
from rl_cli.training.replay_worker import Player


@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_bundled_files_are_right(path: Path) -> None:
    assert find_file(path.stem) == path == find_file(path.name)
    assert read_play(path).entries


def test_every_kind_of_entry_can_be_played() -> None:
    from rl_cli.training.replay_file import CHECKS

    assert [kind for kind in CHECKS if not hasattr(Player, f"_{kind}")] == []


MISTAKES = [
    ("- step: 1\n- setp: 2\n", 2, "did you mean step"),
    ("- step: one\n", 1, "the number of the step"),
    ("- step: 1\n  loss: high\n", 1, "loss must be a number"),
    ("- phase: dancing\n", 1, "loading, sft"),
    ("- log: hello\n- evaluation: {which: finale, accuracy: 0.5}\n", 2, "untrained, initial"),
    ("- evaluation: {which: final, accuracy: 50}\n", 1, "between 0 and 1"),
    ("- repeat: {count: 3}\n", 1, "values"),
    ("- repeat: {count: 3, values: {loss: [1, 2, 3]}}\n", 1, "[first, last]"),
    ("- repeat: {count: 3, valeus: {loss: 1}}\n", 1, "did you mean values"),
    ("- kill: 99\n", 1, "no signal 99"),
    ("- stall: please\n", 1, "true, deaf"),
    ("- delay: 1\n  log: both\n", 1, "has no 'log' beside it"),
    ("play:\n- step: 1\nstop_now: true\n", 3, "unknown key 'stop_now'"),
    ("play:\n- step: 1\ntotal_steps: many\n", 3, "total_steps"),
    ("play:\n- step: 1\non_stop:\n- nothing: 1\n", 4, "unknown entry"),
    ("steps: 3\n", 1, "a list of entries"),
    ("[]\n", 1, "a list of entries"),
    ("- just text\n", 1, "an entry is a mapping"),
]


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "play.yaml"
    path.write_text(text)
    with pytest.raises(BadUsage) as caught:
        read_play(path)
    assert f"{path}:{line}:" in str(caught.value)
    assert message in str(caught.value)


def test_what_is_no_yaml_or_no_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "play.yaml"
    path.write_text("- step: [1\n")
    with pytest.raises(BadUsage, match="line 2"):
        read_play(path)
    with pytest.raises(BadUsage, match="one of ours: alerts, crash, demo"):
        find_file("nothing")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadUsage, match="cannot read"):
        read_play(path)
