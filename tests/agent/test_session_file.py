"""Sessions on the disk: found, listed, locked, and whole after a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rl_cli.agent.session_store import find_session, list_sessions, new_session, open_session
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import user
from tests.e2e.cli import rl_cli


def begin(home: Path, *requests: str) -> str:
    session = new_session(home, "a/b")
    for request in requests:
        session.record("message", message=user(request))
    session.close()
    return session.id


def test_a_session_appears_with_its_first_event_and_goes_on_where_it_was(home: Path) -> None:
    assert begin(home) not in [info.id for info in list_sessions(home)]
    first = begin(home, "train", "and now?")
    session = open_session(home, first)
    session.record("state", state={"run_id": "r"})
    session.close()
    [info] = list_sessions(home)
    assert (info.id, info.model, info.turns, info.title) == (first, "a/b", 2, "train")
    assert info.started
    lines = [json.loads(line) for line in info.path.read_text("utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["session", "message", "message", "state"]
    assert open_session(home, first).history.state == {"run_id": "r"}


def test_sessions_are_found_by_id_beginning_and_latest(home: Path) -> None:
    with pytest.raises(BadUsage, match="no sessions yet"):
        find_session(home, "latest")
    one, two = begin(home, "one"), begin(home, "two")
    os.utime(find_session(home, one), (1, 1))
    assert find_session(home, "latest").stem == two
    assert find_session(home, one[:-1] if one[:-1] != two[:-1] else one).stem == one
    with pytest.raises(BadUsage, match="2 sessions"):
        find_session(home, "2")
    for unknown in ("x", "", "../../etc/passwd", "latest ", "*"):
        with pytest.raises(BadUsage, match="no session"):
            find_session(home, unknown)


def test_what_is_no_session_file_is_passed_over(home: Path) -> None:
    ours = begin(home, "train")
    folder = home / "sessions"
    os.utime(folder / f"{ours}.jsonl", (1, 1))  # everything else is newer
    (folder / "dangling.jsonl").symlink_to(folder / "nowhere")
    (folder / "round.jsonl").symlink_to(folder / "round.jsonl")
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl"))).write_text("{}\n")
    (folder / "locked.jsonl").write_text("{}\n")
    (folder / "locked.jsonl").chmod(0)
    there = [info.id for info in list_sessions(home)]
    assert there == ([ours] if os.geteuid() else ["locked", ours])  # root may read it
    os.unlink(folder / "locked.jsonl")
    assert find_session(home, "latest").stem == ours
    listed = rl_cli("sessions", "list", "--json", timeout=60)
    assert (listed.code, [row["id"] for row in listed.rows()]) == (0, [ours])
    for name in ("pipe", "folder", "dangling"):
        told = rl_cli("ask", "hello", "--session", name, timeout=60)
        assert (told.code, "no session" in told.err) == (2, True), told.err


def test_an_empty_name_is_no_session(home: Path) -> None:
    begin(home, "train")
    told = rl_cli("ask", "hello", "--session", "")
    assert (told.code, told.out) == (2, "")
    assert "no session is named" in told.err
    assert len(list_sessions(home)) == 1


def test_a_second_process_is_refused_until_the_first_is_gone(home: Path) -> None:
    session_id = begin(home, "train")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path\n"
            "from rl_cli.agent.session_store import open_session\n"
            "kept = open_session(Path(sys.argv[1]), 'latest'); print('open', flush=True); time.sleep(600)",
            str(home),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(BadUsage, match=f"{session_id} is open in another process"):
            open_session(home, session_id)
        holder.kill()
    open_session(home, session_id).close()


def test_a_torn_line_is_closed_off_and_passed_over(home: Path) -> None:
    session_id = begin(home, "train", "stop")
    path = find_session(home, session_id)
    path.write_bytes(path.read_bytes()[:-20])
    session = open_session(home, session_id)
    session.record("message", message=user("status"))
    session.close()
    texts = [m["content"] for m in open_session(home, session_id).history.messages()]
    assert texts == ["train", "status"]
