"""What is quoted, drafted or meant for somebody else becomes no call, whatever is broken around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from environments.parsers.families import FAMILIES
from tests.environments.parsers.replay import in_pieces, stream

LINES = Path(__file__).with_name("spoken_of.jsonl").read_text(encoding="utf-8").splitlines()
"""Rows of family, text, and the call that is only spoken of in it, or the good calls beside a broken one."""


@pytest.mark.parametrize("row", [json.loads(line) for line in LINES])
def test_what_is_spoken_of_is_not_called(row: dict[str, Any]) -> None:
    family, text = FAMILIES[row["family"]], row["text"]
    parsed = family.parse(text)
    called = [call.name for call in parsed.tool_calls]
    assert called == row.get("called", called)
    assert row.get("never") not in called
    told = f"{parsed.content} {parsed.reasoning} {parsed.tool_calls} {parsed.errors}"
    assert row.get("never", "") in told
    assert stream(family, None, in_pieces(text, 1)) == parsed
