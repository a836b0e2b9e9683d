"""Which environment or run a text names."""

from __future__ import annotations

from typing import Any

import pytest

from environments.policies.operator.names import environment, runs
from tests.environments.operator.simulated import ENVIRONMENTS


@pytest.mark.parametrize(
    ("subject", "kind", "name"),
    [
        ("Train a GSM8K model", "exact", "gsm8k"),
        ("训练一个GSM8K模型", "exact", "gsm8k"),
        ("train gsm8k mini", "exact", "gsm8k-mini"),
        ("train GSM8K_mini", "exact", "gsm8k-mini"),
        ("the GSM-8K dataset", "exact", "gsm8k"),
        ("train toolmath", "exact", "tool-math"),
        ("train gsm8k-mni", "misspelled", "gsm8k-mini"),
        ("train the gms8k model", "misspelled", "gsm8k"),
        ("tool maths", "misspelled", "tool-math"),
        ("train the calculator environment", "described", "tool-math"),
        ("训练计算器环境", "described", "tool-math"),
        ("train it again please", "none", None),
        ("训练", "none", None),
        ("train gsm1k", "unknown", None),
        ("train gsm8k-large", "unknown", None),
        ("train chess", "unknown", None),
        ("训练下棋", "unknown", None),
        ("train gsm8k and tool-math", "several", None),
        ("train the word problem model", "several", None),
    ],
)
def test_environment(subject: str, kind: str, name: str | None) -> None:
    match = environment(subject, ENVIRONMENTS)
    assert (match.kind, match.name) == (kind, name)


def test_an_unknown_name_gets_the_nearest() -> None:
    assert environment("train gsm8k-large", ENVIRONMENTS).others[:2] == ("gsm8k", "gsm8k-mini")


def test_words_that_say_nothing_known_are_reported() -> None:
    assert environment("train gsm8k-mini with cosine schedule", ENVIRONMENTS).unread == ("cosine", "schedule")
    assert environment("please train a good gsm8k-mini model for me", ENVIRONMENTS).unread == ()


def test_a_name_in_chinese_is_found_without_spaces() -> None:
    rows: list[dict[str, Any]] = [*ENVIRONMENTS, {"name": "数独", "description": "Sudoku."}]
    assert environment("训练数独环境", rows).name == "数独"


def test_runs_by_id_by_start_and_by_environment() -> None:
    rows = [
        {"id": "20260103-000000-gsm8k-mini", "environment": "gsm8k-mini"},
        {"id": "20260102-030405-gsm8k-mini", "environment": "gsm8k-mini"},
        {"id": "20260101-000000-tool-math", "environment": "tool-math"},
    ]
    newest, older, tool = (row["id"] for row in rows)
    assert runs(f"compare {older} and {tool.upper()}", rows) == ([older, tool], [])
    assert runs("stop 20260102-03", rows) == ([older], [])
    assert runs("results of gsm8k-mini", rows) == ([newest], [])
    assert runs("show 20270101-gsm8k", rows) == ([], ["20270101-gsm8k"])
    assert runs("show the last run", rows) == ([], [])
