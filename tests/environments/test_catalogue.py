"""Listing without importing, a person's own files, and describing in a child process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from environments import catalogue
from environments.catalogue import describe, list_environments, load_environment
from rl_cli.core.errors import BadUsage, WorkFailed
from tests.core.test_processes import gone, wait_until

GOOD = '''
"""Mine."""
from collections.abc import Iterator
from environments.base import Environment, EnvironmentConfig, Reward, Task
from rl_cli.core.messages import user

print("printed while it is imported")

class Options(EnvironmentConfig):
    size: int = 3
    """How many tasks."""

class Mine(Environment):
    name = "mine"
    description: str = "My own."
    profiles = ("cpu-demo", "single-gpu")
    Config = Options

    def tasks(self, split, seed) -> Iterator[Task]:
        return (Task(f"mine/{split}/{n}", {"n": n}) for n in range(self.config.size))

    def prompt(self, task):
        return [user(f"Say {task.data['n']}.")]

    async def reward(self, task, rollout, ctx):
        """1 if it
        says n."""
        return Reward(1.0)
'''
HEAD = "from environments.base import Environment\n"
BROKEN = {
    "syntax.py": "class X(\n",
    "computed.py": HEAD + 'class X(Environment):\n    name = "computed"\n    description = str(3)\n',
    "nameless.py": HEAD + 'class X(Environment):\n    description = "x"\n',
    "nothing.py": "x = 1\n",
    "taken.py": HEAD + 'class X(Environment):\n    name = "gsm8k-mini"\n    description = "x"\n',
    "latin.py": "# \xe9\n".encode("latin-1"),
}
CRASHES = (
    HEAD
    + 'class X(Environment):\n    name = "crashes"\n    description = "x"\n\nraise OSError("no such thing")\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "my envs"
    folder.mkdir()
    for name, text in {"good.py": GOOD, "crashes.py": CRASHES, "_helper.py": "(", **BROKEN}.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "notes.txt").write_text("not Python")
    return folder


def test_the_built_in_ones_are_listed() -> None:
    found = {info.name: info for info in list_environments()}
    assert {"gsm8k", "gsm8k-mini", "tool-math"} <= set(found)
    assert found["gsm8k"].stand_in == "gsm8k-mini"
    assert found["gsm8k-mini"].profiles == ("cpu-demo",)
    assert all(info.problem is None and info.builtin and info.description for info in found.values())


def test_broken_files_are_listed_with_their_problem_and_break_nothing(folder: Path) -> None:
    own = {info.path.name: info for info in list_environments(folder) if not info.builtin}
    assert set(own) == {"good.py", "crashes.py", *BROKEN}
    assert own["good.py"].problem is None
    assert (own["good.py"].name, own["good.py"].profiles) == ("mine", ("cpu-demo", "single-gpu"))
    assert "line 1" in (own["syntax.py"].problem or "")
    assert "literal" in (own["computed.py"].problem or "")
    assert "literal" in (own["nameless.py"].problem or "")
    assert "no class" in (own["nothing.py"].problem or "")
    assert "taken by" in (own["taken.py"].problem or "")
    assert "parsed" in (own["latin.py"].problem or "")
    assert own["crashes.py"].problem is None  # listing does not run it


@pytest.mark.parametrize(
    "name", ["../../x y", "/etc/passwd", "n" * 300, "a\nb", "\x1b[31m", "-x", ".x", "a b", "é", "a\n"]
)
def test_a_name_that_is_no_plain_word_is_a_problem(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(f"{HEAD}class X(Environment):\n    name = {name!r}\n")
    (own,) = (info for info in list_environments(tmp_path) if not info.builtin)
    assert own.name == "mine"
    assert "begin with a letter or digit" in (own.problem or "")
    assert (own.problem or "").isprintable()
    assert len(own.problem or "") < 250


def test_files_that_would_hang_or_crash_the_listing_are_problems(tmp_path: Path) -> None:
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "big.py").write_text("#" * 1_000_001)
    (tmp_path / "deep.py").write_text("x = " + "(" * 5000)
    (tmp_path / "odd\n\udcff.py").write_text("x = 1")
    (tmp_path / "keys.py").write_text(HEAD + "class X(Environment):\n    name = {[]: 1}\n")
    problems = {info.name: info.problem for info in list_environments(tmp_path) if not info.builtin}
    assert all(problems.values())
    assert "a device or a pipe" in problems["zero"]
    assert "a device or a pipe" in problems["fifo"]
    assert "does not exist" in problems["gone"]
    assert "folder" in problems["folder"]
    assert "larger than 1 MB" in problems["big"]
    assert "".join(problems).isprintable()


def test_listing_imports_no_environment(folder: Path) -> None:
    code = (
        "import sys; from environments.catalogue import list_environments; "
        f"list_environments({str(folder)!r}); "
        "own = ('environments.gsm8k', '_rl_cli_environment', 'torch'); "
        "print([m for m in sys.modules if m.startswith(own)])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_folder_is_no_error(tmp_path: Path) -> None:
    assert list_environments(tmp_path / "none") == list_environments()


def test_loading_names_what_is_wrong(folder: Path) -> None:
    assert load_environment("mine", {"size": 5}, folder).config.model_dump() == {"size": 5}
    with pytest.raises(BadUsage, match=r"size: .*integer.*; siez: no such option \(did you mean size"):
        load_environment("mine", {"size": "many", "siez": 1}, folder)
    with pytest.raises(BadUsage, match=r"gsm8k-mni.*did you mean gsm8k-mini"):
        load_environment("gsm8k-mni")
    with pytest.raises(BadUsage, match="cannot be parsed"):
        load_environment("syntax", {}, folder)
    with pytest.raises(BadUsage, match="it has no options"):
        load_environment("gsm8k-mini", {"size": 1})


def test_describing_a_built_in_one() -> None:
    answer = describe("tool-math")
    assert answer["sizes"] == {"train": None, "validation": None, "test": None}
    assert answer["toolsets"] == ["math"]
    assert answer["has_warm_start"]
    assert answer["example"]["messages"][0]["role"] == "user"
    assert answer["problem"] is None


def test_describing_a_persons_own_in_a_child(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answer = describe("mine", {"size": 2}, folder)
    assert answer["sizes"] == {"train": 2, "validation": 2, "test": 2}
    assert answer["reward"] == "1 if it says n."
    assert answer["example"] == {
        "task_id": "mine/train/0",
        "messages": [{"role": "user", "content": "Say 0."}],
    }
    assert answer["options_schema"]["properties"]["size"]["description"] == "How many tasks."
    assert capfd.readouterr().out == ""


def test_a_failure_while_describing_is_one_clear_line(folder: Path) -> None:
    with pytest.raises(WorkFailed, match="OSError: no such thing") as failed:
        describe("crashes", {}, folder)
    assert "\n" not in str(failed.value)
    with pytest.raises(BadUsage, match="siez"):
        describe("mine", {"siez": 2}, folder)


def write(folder: Path, code: str) -> Path:
    """A folder with one environment, `odd`, that does this at import."""
    (folder / "odd.py").write_text(
        f'{HEAD}class Odd(Environment):\n    name = "odd"\n    description = "x"\n\n{code}\n'
    )
    return folder


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ValueError('a\\nsecond')", "ValueError: a second"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise ValueError('\\x1b[31mred' + 'x' * 5000)", "ValueError: .\\[31mredx"),
        ("import os; print('last words', flush=True); os._exit(3)", "last words"),
        ("import os; os._exit(3)", "exit code 3"),
    ],
)
def test_whatever_the_code_raises_is_said_on_one_line(tmp_path: Path, code: str, words: str) -> None:
    with pytest.raises(WorkFailed, match=words) as failed:
        describe("odd", {}, write(tmp_path, code))
    assert failed.value.message.isprintable()
    assert len(failed.value.message) < 600


RUNNING = """
    def prompt(self, task):
        return []

    def tasks(self, split, seed):
        return iter(())

    async def reward(self, task, rollout, ctx):
        return None
"""


@pytest.mark.parametrize("session", [False, True])
def test_what_it_prints_and_starts_neither_spoils_nor_outlives_the_answer(
    tmp_path: Path, session: bool
) -> None:
    note = tmp_path / "pids"
    code = (
        f"{RUNNING}\nimport os, subprocess, sys, threading, time\nos.write(1, b'{{}} to descriptor 1')\n"
        f"assert sys.stdin.read() == ''\nthreading.Thread(target=time.sleep, args=(777,)).start()\n"
        f"p = subprocess.Popen(['sleep', '777'], start_new_session={session})\n"
        f"open({str(note)!r}, 'w').write(f'{{os.getpid()}} {{p.pid}}')"
    )
    began = time.monotonic()
    assert describe("odd", {}, write(tmp_path, code))["name"] == "odd"
    assert time.monotonic() - began < 30
    assert all(gone(int(pid)) for pid in note.read_text().split())


def test_the_time_limit_ends_the_whole_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "DESCRIBE_SECONDS", 4)
    note = tmp_path / "pids"
    with pytest.raises(WorkFailed, match="took over 4 s"):
        describe("odd", {}, write(tmp_path, SLEEPS.format(note=str(note))))
    assert all(gone(int(pid)) for pid in note.read_text().split())


SLEEPS = (
    "import os, subprocess, time\np = subprocess.Popen(['sleep', '777'], start_new_session=True)\n"
    "open({note!r} + '~', 'w').write(f'{{os.getpid()}} {{p.pid}}')\nos.rename({note!r} + '~', {note!r})\n"
    "time.sleep(777)"
)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_when_whoever_asked_is_ended(tmp_path: Path, sent: signal.Signals) -> None:
    note = tmp_path / "pids"
    folder = write(tmp_path, SLEEPS.format(note=str(note)))
    code = f"from environments.catalogue import describe; describe('odd', {{}}, {str(folder)!r})"
    asking = subprocess.Popen([sys.executable, "-P", "-c", code])
    wait_until(note.exists)
    asking.send_signal(sent)
    asking.wait()
    wait_until(lambda: all(gone(int(pid)) for pid in note.read_text().split()))


def test_data_that_cannot_be_had_is_said_and_the_rest_described(tmp_path: Path) -> None:
    answer = describe("gsm8k", {"path": str(tmp_path / "none")})
    assert "there is no file or folder" in answer["problem"]
    assert answer["sizes"] is None
    assert answer["reward"]
