from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.runs.log_lines import as_object, fields_of, readable
from tests.e2e.cli import rl_cli
from tests.runs.kit import start, until_over

PLAIN = (
    "loaded 8 tasks",
    "",
    "    return {'a': 1}",
    "sizes: {1, 2}",
    "{}",
    "torn: {'a': 1",
    "called: {'a': open('/etc/passwd')}",
    "step 3: {1: 2}",
    "{" * 10_000 + "}" * 10_000,
    "long: {'a': '" + "x" * 70_000 + "'}",
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            '{"level": "warning", "time": "2026-03-01T12:00:00Z", "msg": "queue is full", "size": 3}',
            "2026-03-01T12:00:00Z WARNING queue is full  size 3",
        ),
        (
            "step 9/40: {'reward/mean': 0.73046875, 'loss': nan, 'lr': -inf}",
            "step 9/40  reward/mean 0.7305, loss nan, lr -inf",
        ),
        ("{'message': 'two\\nlines', 'severity': 'error'}", "ERROR two lines"),
        ('{"event": "saved", "path": {"step": 5}}', 'saved  path {"step": 5}'),
        ('{"text": "", "level": 30}', "30"),
    ],
)
def test_a_structured_line_is_read_as_a_sentence(line: str, told: str) -> None:
    assert readable(line) == told


def test_unix_times_are_moments_whatever_their_unit() -> None:
    told = {readable(json.dumps({"ts": 1772366400 * unit, "msg": "m"})) for unit in (1, 10**3, 10**6, 10**9)}
    assert len(told) == 1
    assert told.pop().startswith("2026-03-01 ")


@pytest.mark.parametrize("line", PLAIN)
def test_any_other_line_stays_as_it_is(line: str) -> None:
    assert readable(line) == line
    assert as_object(line) == {"text": line}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), values, min_size=1, max_size=5), st.booleans())
def test_fields_are_read_back_as_they_were_written(fields: dict[str, Any], as_python: bool) -> None:
    line = repr(fields) if as_python else json.dumps(fields)
    found = fields_of(line)
    assert found is not None
    assert _comparable(found[1]) == _comparable(fields)
    assert "\n" not in readable(line)


@given(st.text())
def test_no_text_is_too_odd(line: str) -> None:
    assert isinstance(readable(line), str)
    assert as_object(line)


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _comparable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_comparable(one) for one in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def test_logs_are_shown_readably_and_kept_as_json(runs: Any) -> None:
    row = {"level": "info", "msg": "worker is up", "rank": 0}
    run = start(runs, [{"phase": "grpo"}, {"log": json.dumps(row)}, {"log": "plain"}])
    until_over(run)
    assert rl_cli("runs", "logs", run.id).out == "INFO worker is up  rank 0\nplain\n"
    assert rl_cli("runs", "logs", run.id, "--json").rows() == [row, {"text": "plain"}]
