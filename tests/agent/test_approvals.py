from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import Iterator
from typing import Any

import pytest

import tests.tools.sample_tools  # noqa: F401
from rl_cli.agent.approvals import describe_call, make_approver
from tools.dispatcher import ApprovalRequest, Verdict, tool_specs


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as standard input; what is written to it is typed."""
    ours, theirs = pty.openpty()
    with open(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        yield ours
    os.close(ours)


SPECS = tool_specs(["test"])


def verdict(name: str, arguments: dict[str, Any] | None = None, **flags: bool) -> Verdict:
    return asyncio.run(make_approver(**flags)(ApprovalRequest(SPECS[name], arguments or {})))


def test_reading_and_writing_need_nobody_and_yes_allows_the_rest() -> None:
    for name in ("echo", "write_it"):
        assert verdict(name, yes=False, interactive=False).allow
    for name in ("execute_it", "spend_it"):
        assert verdict(name, yes=True, interactive=False).allow
        refused = verdict(name, yes=False, interactive=False)
        assert not refused.allow
        assert "--yes" in refused.reason


@pytest.mark.parametrize(
    ("answer", "allow"),
    [("y\n", True), ("YES\n", True), ("是\n", True), ("yeah\n", False), ("\n", False), ("\x04", False)],
)
def test_only_a_clear_yes_counts(answer: str, allow: bool, keyboard: int) -> None:
    os.write(keyboard, answer.encode())
    assert verdict("spend_it", {"what": "x"}, yes=False, interactive=True).allow is allow


def test_questions_come_one_at_a_time(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, b"y\nn\n")

    async def main() -> list[bool]:
        approve = make_approver(yes=False, interactive=True)
        verdicts = await asyncio.gather(
            *(approve(ApprovalRequest(SPECS[name], {})) for name in ("spend_it", "execute_it"))
        )
        return [v.allow for v in verdicts]

    assert asyncio.run(main()) == [True, False]
    assert capsys.readouterr().err.count("[y/N]") == 2


def test_nothing_is_hidden_in_what_is_shown() -> None:
    shown = describe_call(SPECS["execute_it"], {"what": "rm -rf /\r\x1b[2Kls\u202e\u200b", "训练": ["a\nb"]})
    assert shown.isascii() is False
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert "\\u202e" in shown
    assert "训练" in shown
    assert len(shown.splitlines()) == 3
