"""What a chat that is gone on with shows of the last exchange."""

from __future__ import annotations

from rl_cli.agent.history import History
from rl_cli.cli.chat import RECAP_LINES, last_exchange


def test_the_recap_keeps_the_lines_of_a_list() -> None:
    history = History()
    history.request, history.words = "list runs", "Runs:\n- a\n- b\n\nNext: x"
    assert last_exchange(history) == ["  > list runs", "  Runs:", "  - a", "  - b", "  Next: x"]
    history.words = "\n".join(map(str, range(100)))
    assert len(last_exchange(history)) == RECAP_LINES + 2
