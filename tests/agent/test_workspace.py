"""The assistant's own commands and files: in a sandbox that can change its folder, and outside when asked."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rl_cli.agent.approvals import Approvals
from rl_cli.agent.workspace import open_workspace
from rl_cli.core.settings import config_folder
from tests.agent.talk import Playing, calls, talk
from tests.components import leave_out
from tools.dispatcher import CallContext, handle_function_call
from tools.sandboxes.kinds import usable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the conversation was started."""
    for kind in ("bubblewrap", "local"):
        if why := usable(kind):
            leave_out(f"{kind} ({why})")
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def called(folder: Path, home: Path, approve: Approvals, *made: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of calls that the assistant makes in one turn."""

    async def main() -> list[Any]:
        workspace = open_workspace(folder, home)
        context = CallContext(
            "chat",
            "s",
            workspace.toolsets,
            approve=approve,
            sandbox=workspace.sandbox,
            file_roots=workspace.file_roots,
        )
        try:
            return [json.loads(await handle_function_call(*call, context)) for call in made]
        finally:
            await workspace.sandbox.stop()

    return asyncio.run(main())


def answering(*answers: str) -> tuple[list[str], Approvals]:
    left, questions = list(answers), []

    async def ask(question: str, choices: Sequence[str]) -> str:
        questions.append(question)
        return left.pop(0)

    return questions, Approvals(interactive=True, ask=ask)


def terminal(command: str) -> tuple[str, dict[str, Any]]:
    return "terminal", {"command": command}


def outside(command: str) -> tuple[str, dict[str, Any]]:
    return "run_outside", {"command": command, "reason": "it is not in the folder"}


def test_a_command_of_the_assistant_changes_its_folder_and_nothing_else(
    folder: Path, tmp_path: Path, home: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    made = [
        terminal("echo hi >note.txt; pwd"),
        terminal(f"cat {secret}; echo x >{secret}; ls ~ ; echo $HOME"),
        ("write_file", {"path": "../secret", "content": "x"}),
        ("read_file", {"path": str(secret)}),
        ("read_file", {"path": "note.txt"}),
    ]
    first, second, written, read, note = called(folder, home, Approvals(yes=True), *made)
    assert first["stdout"] == f"{folder}\n"
    assert (folder / "note.txt").read_text() == "hi\n"
    assert "key" not in second["stdout"]
    assert "/home/sandbox" in second["stdout"]
    assert secret.read_text() == "key"
    assert [result["error"]["type"] for result in (written, read)] == ["outside", "outside"]
    assert "run_outside" in read["error"]["hint"]
    assert note["content"] == "hi\n"


def test_one_answer_is_about_all_commands_in_the_folder_and_leaving_is_asked_each_time(
    folder: Path, tmp_path: Path, home: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    questions, approvals = answering("s", "y", "no, I do it myself")
    write = ("write_file", {"path": "f", "content": "x"})
    made = [terminal("echo 1"), write, terminal("echo 2"), outside(f"cat {secret}"), outside(f"rm {secret}")]
    one, _, two, looked, removed = called(folder, home, approvals, *made)
    assert (folder / "f").exists()
    assert (one["stdout"], two["stdout"], looked["stdout"]) == ("1\n", "2\n", "key")
    assert removed["error"]["type"] == "refused"
    assert "I do it myself" in removed["error"]["message"]
    assert secret.exists()
    assert len(questions) == 3
    first, second = (re.sub(r"\n  \| ", "", question) for question in questions[:2])
    assert f'folder: "{folder}"' in first
    assert "without network" in first
    assert "every call of terminal, process, write_file, patch with the same folder" in first
    assert "outside of the sandbox, with all your files and the network" in re.sub(r"\s+", " ", second)
    assert "it is not in the folder" in second


def test_an_answer_for_one_folder_is_none_for_another(folder: Path, tmp_path: Path, home: Path) -> None:
    questions, approvals = answering("s", "n")
    called(folder, home, approvals, terminal("echo 1"))
    other = tmp_path / "other"
    other.mkdir()
    [refused] = called(other, home, approvals, terminal("echo 1"))
    assert refused["error"]["type"] == "refused"
    assert len(questions) == 2


def test_only_a_rule_of_a_file_that_names_it_lets_a_command_leave_unasked(folder: Path, home: Path) -> None:
    approvals = Approvals([{"tool": "*", "do": "allow"}, {"tool": "run_*", "do": "allow"}], yes=True)
    approvals.allow_for_session("*")
    approvals.allow_for_session("run_outside")
    [refused] = called(folder, home, approvals, outside("true"))
    assert refused["error"]["type"] == "refused"
    assert "--yes does not cover that" in refused["error"]["message"]
    [done] = called(folder, home, Approvals([{"tool": "run_outside", "do": "allow"}]), outside("true"))
    assert done["exit_code"] == 0
    denied = Approvals([{"tool": "*", "do": "deny"}, {"tool": "run_outside", "do": "allow"}])
    assert called(folder, home, denied, outside("true"))[0]["error"]["type"] == "refused"
    for key in ("s", "a"):
        questions, asked = answering(key)
        assert called(folder, home, asked, outside("true"))[0]["error"]["type"] == "refused"
        assert "for this session" not in questions[0]


def test_what_runs_outside_has_the_persons_home_and_no_keys(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    _, approvals = answering("y")
    [result] = called(folder, home, approvals, outside("pwd; echo $HOME; env"))
    assert result["stdout"].splitlines()[:2] == [str(folder), str(Path.home())]
    assert "sk-very-secret" not in result["stdout"]


def test_a_folder_that_holds_more_than_a_project_is_not_handed_over(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, why in {
        Path.home(): "all of your files",
        Path.home().parent: "all of your files",
        config_folder(): "the settings",
        home: "the runs",
        home / "runs": "the runs",
        home.parent: "the runs",
    }.items():
        workspace = open_workspace(place, home)
        assert workspace.file_roots == ()
        assert workspace.sandbox.config
        assert workspace.sandbox.config.workdir is None
        [note] = workspace.notes
        assert why in note or "the settings" in note
    assert open_workspace(folder, home).notes == ()
    [made] = called(home, home, Approvals(yes=True), terminal("echo hi >note; pwd; ls -A"))
    assert made["stdout"] == "/workspace\nnote\n"
    assert not (home / "note").exists()


def test_in_a_conversation_the_shell_goes_on_and_the_session_stays_plain(folder: Path, home: Path) -> None:
    policy = Playing(
        calls(terminal("mkdir data; cd data; export N=3")), calls(terminal("pwd; echo $N")), "Done."
    )
    [result] = talk(
        home, policy, "look", toolsets=(), workspace=open_workspace(folder, home), approve=Approvals(yes=True)
    )
    shown = json.loads(result.calls[-1].result)
    assert shown["stdout"] == f"{folder}/data\n3\n"
    assert os.listdir(folder) == ["data"]


def test_a_folder_that_a_link_takes_the_place_of_is_no_longer_the_one_that_was_allowed(
    folder: Path, tmp_path: Path, home: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def main() -> list[Any]:
        workspace = open_workspace(folder, home)
        folder.rmdir()
        folder.symlink_to(other)
        context = CallContext(
            "chat",
            "s",
            workspace.toolsets,
            approve=Approvals(yes=True),
            sandbox=workspace.sandbox,
            file_roots=workspace.file_roots,
        )
        made = [terminal("echo x >f"), ("write_file", {"path": "f", "content": "x"})]
        return [json.loads(await handle_function_call(*call, context)) for call in made]

    assert [result["error"]["type"] for result in asyncio.run(main())] == ["sandbox", "outside"]
    assert list(other.iterdir()) == []
