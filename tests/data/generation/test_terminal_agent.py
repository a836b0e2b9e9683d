"""The agent with one terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.data.generation.terminal_agent import final_output
from tests.data.generation.batches import make, rows, write_prompts
from tests.wire.server import Call, Reply, WireServer

LINE = "MINI_SWE_AGENT_FINAL_OUTPUT"


def test_it_finishes_with_a_call(tmp_path: Path) -> None:
    script = [
        Reply(calls=[Call("bash", {"command": "cd /tmp && pwd"})]),
        Reply(calls=[Call("bash", {"command": "pwd"})]),
        Reply(calls=[Call("finish", {"answer": "it is /tmp"})]),
    ]
    with WireServer(script) as server:
        make(write_prompts(tmp_path / "in.jsonl", ["where?"]), server, agent="terminal", toolsets=None)
        offered = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    (row,) = rows()
    assert offered == ["bash", "finish"]
    assert (row["completed"], row["marks"]) == (True, ["no_reasoning"])
    assert "/tmp" in row["messages"][4]["content"]
    assert [m["role"] for m in row["messages"]][-2:] == ["assistant", "tool"]


@pytest.mark.parametrize(
    "last",
    [
        Reply(calls=[Call("bash", {"command": f"echo {LINE}; echo 42"})]),
        Reply(f"{LINE}\n42"),
        Reply(f"{LINE}\n42", calls=[Call("bash", {"command": "true"})]),
    ],
)
def test_it_finishes_with_the_line_of_mini_swe_agent(tmp_path: Path, last: Reply) -> None:
    with WireServer([last]) as server:
        ended = make(write_prompts(tmp_path / "in.jsonl", ["?"]), server, agent="terminal", toolsets=None)
        assert len(server.requests) == 1
    (row,) = rows()
    assert (ended.exit_code, row["completed"], row["marks"]) == (0, True, ["no_reasoning"])


def test_only_a_first_line_ends_it() -> None:
    assert final_output(f"\n{LINE}\n a \n b\n") == "a \n b"
    assert final_output(f"{LINE}") == ""
    assert final_output(f"before\n{LINE}\n42") is None
    assert final_output(f"{LINE} 42") is None
