"""Which results count as failures, and what is counted."""

from __future__ import annotations

import pytest

from rl_cli.core.messages import assistant, tool_call, tool_result, user
from rl_cli.data.tool_stats import is_failure, reasoning_coverage, tool_stats


@pytest.mark.parametrize(
    "content",
    [
        *("", " \n\t", "error: no such file", "ERROR: x", "\n  Error:"),
        *(
            '{"error": "gone"}',
            '{"error": {"type": "x"}}',
            ' {"error": 1}\n',
            '{"error": true, "success": true}',
        ),
        *('{"success": false}', '{"ok": false, "output": "x"}', '{"error": "x", "loss": NaN}'),
        f'{{"ok": false, "n": {"9" * 5000}}}',
    ],
)
def test_failures(content: str) -> None:
    assert is_failure(content)


@pytest.mark.parametrize(
    "content",
    [
        *(
            "done",
            "no error: fine",
            "errors: 0",
            "{error: yes",
            '{"ok": fals',
            '"error: quoted"',
            "0",
            "false",
            "null",
        ),
        *(
            '{"error": ""}',
            '{"error": null}',
            '{"error": []}',
            '{"error": 0}',
            '{"error": false, "ok": true}',
        ),
        *(
            '{"exit_code": 1, "output": "x"}',
            '{"success": "false"}',
            '{"ok": 0}',
            "{}",
            "[]",
            '[{"error": "x"}]',
        ),
        '{"result": {"error": "inner"}}',
        '{"a":' * 100_000,
    ],
)
def test_no_failures(content: str) -> None:
    assert not is_failure(content)


def test_calls_are_counted_answered_or_not_and_reasoning_by_turn() -> None:
    calls = [tool_call("a", "read", "{}"), tool_call("b", "run", "{}"), tool_call("c", "read", "{}")]
    thought = assistant(None, calls)
    thought["reasoning"] = "look"
    messages = [user("go"), thought, tool_result(calls[0], "x"), tool_result(calls[1], ""), assistant("done")]
    assert tool_stats(messages) == {
        "read": {"count": 2, "success": 1, "failure": 0},
        "run": {"count": 1, "success": 0, "failure": 1},
    }
    assert reasoning_coverage(messages) == {"turns": 2, "with": 1}
