"""Items and their keys: repeated rows, edited inputs, rows that cannot be used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.core.errors import BadUsage
from rl_cli.data.batch.items import items
from tests.data.batch.kit import append, begun, done, read_items, still_to_ask, write_input


def bad_rows(tmp_path: Path, *rows: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    list(items(str(write_input(tmp_path / "in.jsonl", ["fine", *rows])), lambda *bad: found.append(bad)))
    return found


def test_bat_02_repeated_prompts_stay_so_many_items(tmp_path: Path, home: Path):
    folder, config = begun(write_input(tmp_path / "in.jsonl", ["same"] * 4))
    keys = [item.key for item in read_items(config.input)]
    assert len(set(keys)) == 4
    append(folder, [done(f"{keys[2]}-0")])
    assert still_to_ask(folder, config) == [f"{key}-0" for key in keys if key != keys[2]]


def test_bat_03_an_edited_input_asks_what_was_never_asked(tmp_path: Path, home: Path):
    file = write_input(tmp_path / "in.jsonl", ["A", "B", "C"])
    folder, config = begun(file)
    append(folder, [done(read_items(file)[0].key + "-0")])
    write_input(file, ["X", "A", "B", "C", {"prompt": 17}, {"prompt": True}])
    asked = {item.key: item.messages[-1]["content"] for item in read_items(file)}
    assert [asked[key[:-2]] for key in still_to_ask(folder, config)] == ["X", "B", "C", "17"]
    assert bad_rows(tmp_path, {"prompt": True}) == [("line 2", "prompt is neither text nor a number")]


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.randoms())
def test_keys_depend_on_what_is_asked_and_on_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[str], random: Any
):
    folder = tmp_path_factory.mktemp("edited")
    before = {item.key for item in read_items(write_input(folder / "a.jsonl", prompts))}
    moved = random.sample(prompts, len(prompts))
    rows = [{"metadata": {"at": at}, "n": 2, "prompt": prompt} for at, prompt in enumerate(moved)]
    assert {item.key for item in read_items(write_input(folder / "b.jsonl", rows))} == before
    removed = Counter(moved[1:])
    kept = {item.key for item in read_items(write_input(folder / "c.jsonl", [*moved[1:], "new"]))}
    assert len(kept & before) == removed.total()


def test_what_is_asked_is_the_same_as_prompt_and_as_messages(tmp_path: Path):
    rows = [
        {"prompt": "x"},
        {"messages": [{"role": "user", "content": "x"}]},
        {"messages": [{"content": [{"type": "text", "text": "x"}], "role": "user"}], "toolsets": None},
    ]
    assert len({item.key[:32] for item in read_items(write_input(tmp_path / "in.jsonl", rows))}) == 1
    others = [
        {"prompt": "x", "image": "python:3"},
        {"prompt": "x", "cwd": "/src"},
        {"prompt": "x", "toolsets": ["terminal"]},
        {"prompt": "x", "toolsets": []},
        {"prompt": "x "},
    ]
    found = read_items(write_input(tmp_path / "in.jsonl", [*rows, *others]))
    assert len({item.key[:32] for item in found}) == 6


def test_fields_of_a_row(tmp_path: Path):
    rows = [
        {"prompt": 1.5, "n": 3, "toolsets": "terminal, files", "metadata": {"a": 1}, "answer": 42, "a": 2},
        {"prompt": "half a pair \ud800", "image": "", "cwd": "/src", "n": 2.0},
    ]
    first, second = read_items(write_input(tmp_path / "in.jsonl", rows))
    assert first.messages == [{"role": "user", "content": "1.5"}]
    assert (first.samples, first.toolsets) == (3, ("files", "terminal"))
    assert first.metadata == {"a": 1, "answer": 42}
    assert second.messages[0]["content"] == "half a pair \ufffd"
    assert (second.image, second.cwd, second.samples, second.where) == (None, "/src", 2, "line 2")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({}, "it has neither prompt nor messages; it has no fields"),
        (
            {"question": "x", "answer": 1},
            "it has neither prompt nor messages; its fields are question, answer",
        ),
        ([], "it is no object"),
        ({"prompt": " "}, "prompt is empty"),
        ({"prompt": ["x"]}, "prompt is neither text nor a number"),
        ({"prompt": "x", "messages": []}, "it has both prompt and messages"),
        ({"messages": "hello"}, "messages is text, and no JSON"),
        ({"messages": []}, "messages cannot be read: no messages"),
        ({"messages": [{"role": "wizard"}]}, "messages cannot be read: unknown role 'wizard'"),
        (
            {"messages": [{"role": "assistant", "content": "hi"}]},
            "messages end with none of a person or a tool: nothing is asked",
        ),
        ({"messages": [{"role": "user"}]}, "messages end with an empty one: nothing is asked"),
        ({"prompt": "x", "n": 0}, "n is no whole number from 1 to 10000"),
        ({"prompt": "x", "n": True}, "n is no whole number from 1 to 10000"),
        ({"prompt": "x", "cwd": 3}, "cwd is no text"),
        ({"prompt": "x", "metadata": [1]}, "metadata is no object"),
        ({"prompt": "x", "toolsets": {"web": 1}}, "toolsets is no list of names"),
        ({"prompt": "x", "toolsets": ["termnal"]}, "unknown toolset 'termnal' (did you mean terminal?)"),
        (
            {"prompt": "x", "toolsets": ["rl"]},
            "toolset 'rl' is the assistant's own, no rollout is offered it",
        ),
    ],
)
def test_bad_rows_are_told_and_passed_over(tmp_path: Path, bad: Any, why: str):
    assert bad_rows(tmp_path, bad) == [("line 2", why)]


def test_an_input_without_a_good_row_is_refused(tmp_path: Path):
    for rows, told in ([[{}], "line 1: it has neither"], [[], "there is none"]):
        with pytest.raises(BadUsage, match=told):
            read_items(write_input(tmp_path / "in.jsonl", rows))
