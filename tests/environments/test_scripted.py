"""The script as a policy: conditions, slots, and clear errors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from environments.policies.base import Completion, PolicyError, Sampling
from environments.policies.scripted import ScriptedPolicy
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import Message, tool_result, user


def answer(path: Path, script: str, *turns: list[Message]) -> Completion:
    """The last answer; between turns the caller gives results of the calls that were made."""
    file = path / "script.yaml"
    file.write_text(script)

    async def main() -> Completion:
        async with ScriptedPolicy(file).open("r", [], Sampling()) as session:
            completion = await session.complete(turns[0])
            for turn in turns[1:]:
                calls = completion.message.get("tool_calls", [])
                results = [tool_result(c, t["content"] or "") for c, t in zip(calls, turn, strict=False)]
                completion = await session.complete(results or turn)
            return completion

    return asyncio.run(main())


TRAIN = """
- when: {contains: TRAIN}
  text: starting
  tool_calls: [{name: start, arguments: {name: x}}]
- when: {last_tool: start, ok: false}
  text: it failed
- when: {last_tool: start, ok: true}
  tool_calls:
    - name: check
      arguments: {run_id: "{{ start.run_id }}", steps: "{{ start.sizes.1 }}", note: "run {{start.run_id}}!"}
"""


def test_conditions_choose_and_slots_keep_types(tmp_path: Path) -> None:
    good = user('{"ok": true, "run_id": "r-7", "sizes": [1, 40]}')
    completion = answer(tmp_path, TRAIN, [user("please train it")], [good])
    call = completion.message["tool_calls"][0]["function"]
    assert call["arguments"] == '{"run_id": "r-7", "steps": 40, "note": "run r-7!"}'
    assert answer(tmp_path, TRAIN, [user("train")], [user('{"ok": false}')]).message["content"] == "it failed"


def test_every_session_begins_anew_and_a_reply_is_used_once(tmp_path: Path) -> None:
    script = "[{text: one}, {text: two}]"
    assert answer(tmp_path, script, [user("a")]).message["content"] == "one"
    assert answer(tmp_path, script, [user("a")], [user("b")]).message["content"] == "two"
    with pytest.raises(PolicyError, match="no reply left"):
        answer(tmp_path, script, [user("a")], [user("b")], [user("c")])
    assert answer(tmp_path, "[{text: x, repeat: true}]", [user("a")], [user("b")]).message["content"] == "x"


def test_a_slot_that_cannot_be_filled_names_its_path(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nobody\.knows"):
        answer(tmp_path, '[{text: "{{ nobody.knows }}"}]', [user("a")])
    with pytest.raises(PolicyError, match=r"start\.missing"):
        answer(
            tmp_path, TRAIN.replace("start.run_id", "start.missing"), [user("train")], [user('{"ok": true}')]
        )


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("{text: x}", "not a list"),
        ("[{txt: x}]", "0.txt"),
        ("[{when: {after: 3}}]", "when.after"),
        ("[", "cannot read"),
        (None, "cannot read"),
    ],
)
def test_a_malformed_script_is_bad_usage(tmp_path: Path, script: str | None, says: str) -> None:
    file = tmp_path / "script.yaml"
    if script is not None:
        file.write_text(script)
    with pytest.raises(BadUsage, match=says):
        ScriptedPolicy(file)
