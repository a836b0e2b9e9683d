from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rl_cli.config.yaml_text import dump_yaml, parse_assignment, parse_yaml, read_yaml
from rl_cli.core.errors import BadUsage


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("grpo.learning_rate=1e-4", "grpo.learning_rate", 1e-4),
        ("grpo.learning_rate=2.5E+3", "grpo.learning_rate", 2500.0),
        ("grpo.steps=40", "grpo.steps", 40),
        ("tracking.wandb=off", "tracking.wandb", "off"),
        ("tracking.wandb=yes", "tracking.wandb", "yes"),
        ("seed=0123", "seed", 123),
        ("model.lora=", "model.lora", None),
        ("model.lora=null", "model.lora", None),
        ("model.name='12'", "model.name", "12"),
        ("model.name=a=b", "model.name", "a=b"),
        ("model.name=2024-01-01", "model.name", "2024-01-01"),
        ("environment.options.deep=true", "environment.options.deep", True),
        ("model.lora={rank: 32}", "model.lora", {"rank": 32}),
        ("model.lora={}", "model.lora", {}),
    ],
)
def test_a_set_value_is_read_as_a_person_means_it(text, field, value):
    read = parse_assignment(text)
    assert read == (field, value)
    assert type(read[1]) is type(value)


@pytest.mark.parametrize("text", ["grpo.steps", "=4", "a={b: 1", "a=: :", "a=!!x y", "a=*b"])
def test_a_malformed_set_value_is_refused(text):
    with pytest.raises(BadUsage):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("grpo:\n  steps: [1\nseed: 2", "line 3, column 5"),
        ("grpo: {steps: 3}\ngrpo: {steps: 4}", "line 2, column 1"),
        ("a: b: c", "line 1, column 5"),
        ("\tgrpo: 3", "line 1, column 1"),
    ],
)
def test_malformed_yaml_gets_one_line_with_line_and_column(tmp_path: Path, text, where):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(BadUsage) as caught:
        read_yaml(file)
    assert where in str(caught.value)
    assert "bad.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_unreadable_files_are_named(tmp_path: Path):
    latin, listing = tmp_path / "latin.yaml", tmp_path / "list.yaml"
    latin.write_bytes(b"seed: \xff")
    listing.write_text("- 1")
    for path, word in (
        (latin, "UTF-8"),
        (listing, "mapping"),
        (tmp_path / "none.yaml", "does not exist"),
        (tmp_path, "folder"),
    ):
        with pytest.raises(BadUsage, match=word) as caught:
            read_yaml(path)
        assert path.name in str(caught.value)


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[" * 5000, "nested more than"),
        ("{a: " * 41 + "1" + "}" * 41, "nested more than"),
        (BOMB, "anchors"),
        ("seed: *x", "aliases"),
        ("seed: !!bool maybe", "tags"),
        ("seed: !!timestamp x", "tags"),
        ("seed: " + "9" * 5000, "digits"),
        (f"{'k' * 900}: 1\n" * 2, "twice"),
    ],
)
def test_what_would_hang_or_crash_is_one_short_line(text, word):
    with pytest.raises(BadUsage, match=word) as caught:
        parse_yaml(text, "text")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_nesting_within_reason_is_read():
    assert parse_yaml("[" * 30 + "1" + "]" * 30, "text")


def test_what_is_no_regular_file_or_too_big_is_refused_at_once(tmp_path: Path):
    fifo, big = tmp_path / "fifo.yaml", tmp_path / "big.yaml"
    os.mkfifo(fifo)
    big.write_text("# " + "x" * 1_000_000)
    for path, word in (
        (fifo, "a device or a pipe"),
        (Path("/dev/zero"), "device"),
        (big, "larger than 1 MB"),
    ):
        with pytest.raises(BadUsage, match=word):
            read_yaml(path)


@example("\x85")
@example("a\u2028b")
@given(st.text() | st.floats(allow_nan=False) | st.integers() | st.booleans() | st.none())
def test_what_is_written_reads_the_same_here_and_under_yaml_1_1(value):
    text = dump_yaml({"field": value})
    assert parse_yaml(text, "text") == {"field": value}
    assert yaml.safe_load(text) == {"field": value}


@given(
    st.sampled_from(
        ["1e-4", "1e5", "0o7", "0x1f", "off", "y", "~", "0123", "1:30", ".inf", "2024-01-01", "<<", "="]
    )
)
def test_words_that_look_like_other_things_stay_words(word):
    text = dump_yaml({"field": word})
    assert parse_yaml(text, "text") == {"field": word} == yaml.safe_load(text)
