from __future__ import annotations

import pytest

from rl_cli.cli.slash import COMMANDS, Slash, help_lines, parse
from rl_cli.core.errors import BadUsage


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/help", Slash("help", "")),
        ("  /runs  ", Slash("runs", "")),
        ("/STATUS 2026", Slash("status", "2026")),
        ("/model openai/gpt-5", Slash("model", "openai/gpt-5")),
        ("/approve rl_start_*", Slash("approve", "rl_start_*")),
        ("/com", Slash("compact", "")),
        ("/q", Slash("quit", "")),
        ("/exit", Slash("quit", "")),
        ("/?", Slash("help", "")),
    ],
)
def test_a_command_is_its_name_a_clear_beginning_of_it_or_an_alias(line: str, meant: Slash) -> None:
    assert parse(line) == meant


@pytest.mark.parametrize(
    "line",
    ["train a model", "", "/data/problems.jsonl is what I mean", "what does /help do?", "// help", "/ x"],
)
def test_what_is_no_command_is_a_request(line: str) -> None:
    assert parse(line) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/hlep", "did you mean help"),
        ("/frobnicate", "known: help"),
        ("/co", "unknown command '/co'"),
        ("/tmp", "unknown command '/tmp'"),
        ("/compact now", "takes nothing"),
    ],
)
def test_a_wrong_command_says_what_would_be_right(line: str, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        parse(line)


def test_help_has_a_line_for_every_command() -> None:
    lines = help_lines()
    assert len(lines) == len(COMMANDS)
    assert all(f"/{name} " in line for name, line in zip(COMMANDS, lines, strict=True))
