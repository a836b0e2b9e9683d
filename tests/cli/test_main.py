from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rl_cli.cli.main import COMMANDS, resolve
from rl_cli.core.errors import BadUsage
from tests.e2e.cli import command, installed


def one_line(error: str) -> str:
    """The text of an error that is, as it must be, one line."""
    assert error.startswith("error: "), error
    assert error.count("\n") == 1, error
    assert "Traceback" not in error
    return error


def test_help_lists_every_command_with_its_line() -> None:
    for words in ([], ["--help"], ["-h"]):
        outcome = installed(*words)
        assert (outcome.code, outcome.err) == (0, "")
        for name, (_, line) in COMMANDS.items():
            assert f"{name} " in outcome.out
            assert line in outcome.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    outcome = installed(name, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"Usage: rl-cli {name} ")


def test_version() -> None:
    assert installed("--version").out.startswith("rl-cli 0.")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["runs", "list"], ("runs", ["list"])),
        (["train a GSM8K model", "--yes"], ("ask", ["train a GSM8K model", "--yes"])),
        (["--yes", "train a model"], ("ask", ["--yes", "train a model"])),
        (["train", "gsm8k", "--seed", "3"], ("ask", ["train", "gsm8k", "--seed", "3"])),
        (["训练"], ("ask", ["训练"])),
        ([""], ("ask", [""])),
        (["训练一个 GSM8K 模型", "--yes"], ("ask", ["训练一个 GSM8K 模型", "--yes"])),
        (["ask", "runs"], ("ask", ["runs"])),
        (["列出 runs"], ("ask", ["列出 runs"])),
    ],
)
def test_anything_but_a_word_that_is_no_command_is_a_request(
    argv: list[str], expected: tuple[str, list[str]]
) -> None:
    assert resolve(argv) == expected


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["rnus"], "did you mean runs"),
        (["rnus", "list"], "did you mean runs"),
        (["Tools", "list"], "did you mean tools"),
        (["hello"], "known: ask, chat"),
        (["train", "--yes"], "a request takes several words"),
        (["run:1"], "unknown command 'run:1'"),
        (["convert"], "did you mean data convert?"),
    ],
)
def test_a_single_ascii_word_that_is_no_command_is_an_error(argv: list[str], words: str) -> None:
    with pytest.raises(BadUsage, match=words):
        resolve(argv)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["rnus", "list"], "did you mean runs"),
        (["tools", "lst"], "Did you mean 'list'"),
        (["tools", "list", "--jsn"], "No such option"),
        (["tools", "show"], "rl-cli tools show --help"),
        (["tools", "show", "calc"], "did you mean calculator?"),
        (["config", "check", "no/such.yaml"], "no/such.yaml does not exist"),
        (["--frobnicate"], "No such option"),
        (["runs", "report", "x", "--format", "pdf"], "'--format': 'pdf' is not one of 'html', 'md' (see"),
        (
            ["sessions", "export", "x", "--format", "pdf"],
            ": 'pdf' is not one of 'jsonl', 'md' (see",
        ),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(argv: list[str], words: str) -> None:
    outcome = installed(*argv)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in one_line(outcome.err)


def test_a_group_without_its_command_shows_its_help() -> None:
    outcome = installed("tools")
    assert (outcome.code, outcome.out) == (2, "")
    assert "show" in outcome.err


def test_debug_shows_the_traceback_and_the_same_line() -> None:
    plain = installed("tools", "show", "calc")
    debug = installed("tools", "--debug", "show", "calc")
    assert (plain.code, debug.code) == (2, 2)
    assert "Traceback" in debug.err
    assert debug.err.endswith(plain.err)


def test_a_reader_that_leaves_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{command()[0]} tools list --json | head -c 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode in (0, 1), done.stderr) == (True, "")
    closed = subprocess.run(["bash", "-c", f"{command()[0]} --help >&-"], capture_output=True, text=True)
    assert "Traceback" not in closed.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        for unbuffered in ("", "1"):
            environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
            done = subprocess.run(
                command("tools", "list"), stdout=full, stderr=subprocess.PIPE, text=True, env=environment
            )
            assert done.returncode == 1
            assert "disk is full: cannot write the output" in one_line(done.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_an_error_after_output_that_cannot_be_written_is_still_one_line() -> None:
    code = (
        "from rl_cli.cli import main; main.COMMANDS['envs'] = ('tests.cli.broken_command', ''); main.main()"
    )
    words = [sys.executable, "-c", code, "envs", "--said"]
    with open("/dev/full", "w") as full:
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered)
        silent = subprocess.run(words, stdout=full, stderr=full, text=True, env=buffered)
    assert (done.returncode, silent.returncode) == (1, 1)
    assert "unexpected KeyError" in one_line(done.stderr)


def test_an_unexpected_error_is_one_line_that_says_how_to_see_more(tmp_path: Path) -> None:
    code = (
        "from rl_cli.cli import main; main.COMMANDS['envs'] = ('tests.cli.broken_command', ''); main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "envs"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "unexpected KeyError: 'x'" in one_line(done.stderr)
    assert "--debug" in done.stderr


def test_a_missing_extra_names_the_install_command() -> None:
    code = (
        "from rl_cli.cli import main; main.COMMANDS['envs'] = ('tests.cli.broken_command', ''); main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "envs", "--extra"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'rl-flywheel[train]'" in one_line(done.stderr)


def test_an_interrupt_ends_with_130_and_no_traceback() -> None:
    code = (
        "from rl_cli.cli import main; main.COMMANDS['envs'] = ('tests.cli.broken_command', ''); main.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "envs", "--wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "")


def test_a_foreign_package_of_the_same_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").touch()
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rl_cli.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "tools", "list"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "'tools'" in one_line(done.stderr)
    assert "pipx" in done.stderr


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    outcome = installed("tools", "show", "é", PYTHONIOENCODING="ascii")
    assert outcome.code == 2
    assert "\\xe9" in one_line(outcome.err)
    raw = subprocess.run(
        [*command("tools", "call", "calculator").copy(), b'{"expression": "\xff"}'],
        capture_output=True,
        env=os.environ | {"PYTHONUTF8": "1"},
    )
    assert raw.returncode == 2
    assert json.loads(raw.stdout)["error"]["type"] == "invalid_arguments"
