"""Prompts are files, their placeholders are checked, and what is filled in stays as it is."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from prompts.loader import render
from tests.environments.operator.simulated import NAMES


def test_placeholders_are_filled_in_once() -> None:
    text = render("operator_cannot", request="{{request}} {{home}} \\1")
    assert '"{{request}} {{home}} \\1"' in text


@pytest.mark.parametrize("placeholders", [{}, {"request": "a", "colour": "b"}])
def test_missing_and_unused_placeholders_are_errors(placeholders: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"request|colour"):
        render("operator_cannot", **placeholders)


def test_an_unknown_prompt_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        render("no_such_prompt")


def test_operating_procedure_names_every_tool_in_its_order() -> None:
    """The language model is told of all rl_ and data_ tools it is given, and of no other."""
    text = render("operator", home="/home/me/rl", date="2026-01-02", workspace="It is empty.")
    assert "/home/me/rl" in text
    known = {name for name in NAMES.split() if name.startswith(("rl_", "data_"))}
    assert known - {"rl_list_runs"} <= set(re.findall(r"\b(?:rl|data)_\w+", text)) <= known
    order = [
        "rl_list_environments",
        "rl_edit_config",
        "rl_test_inference",
        "rl_start_training",
        "rl_check_status",
    ]
    assert sorted(order, key=text.index) == order


def test_every_english_answer_has_a_chinese_one() -> None:
    names = {Path(str(file)).name for file in files("prompts").iterdir()}
    english = {name for name in names if re.fullmatch(r"operator_\w+\.md", name)}
    assert english
    assert {name.replace(".md", ".zh.md") for name in english} <= names
