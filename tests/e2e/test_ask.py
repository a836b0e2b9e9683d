"""What a request does besides training: interrupts, refusals, exit codes, hostile text."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.cli import command, rl_cli

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    play = tmp_path / "long.yaml"
    play.write_text("- repeat: {count: 600, every: 0.1, values: {loss: 0.1, reward/mean: [0.2, 0.8]}}\n")
    copy = tmp_path / "script.yaml"
    copy.write_text((SCRIPTS / "interrupted.yaml").read_text().replace("PLAY", str(play)))
    return copy


def asking_until_training(script: Path) -> subprocess.Popen[str]:
    """A request that has started its run and waits for it."""
    asking = subprocess.Popen(
        command("ask", "play", "--model", f"scripted/{script}", "--yes"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert asking.stdout
    for line in asking.stdout:
        if "grpo step" in line:
            return asking
    raise AssertionError(f"it ended with {asking.wait()} before training began")


def test_the_first_interrupt_ends_the_wait_and_leaves_the_run_alone(home: Path, script: Path):
    with asking_until_training(script) as asking:
        asking.send_signal(signal.SIGINT)
        rest, _ = asking.communicate(timeout=90)
    assert asking.returncode == 130
    assert "I leave it running." in rest
    assert "goes on by itself; watch it: rl-cli runs watch" in rest
    [run] = rl_cli("runs", "list", "--json").rows()
    assert run["state"] == "running"
    assert rl_cli("runs", "stop", run["id"], "--now").code == 0


def test_two_interrupts_end_the_conversation(home: Path, script: Path):
    with asking_until_training(script) as asking:
        asking.send_signal(signal.SIGINT)
        time.sleep(0.01)
        asking.send_signal(signal.SIGINT)
        rest, _ = asking.communicate(timeout=90)
    assert asking.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in rest
    assert rl_cli("runs", "stop", "latest", "--now").code == 0


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("train mnist", "no environment"),
        ("train gsm8k-mini with 5 steps and 6 steps", "did nothing"),
        ("训练一个下棋模型", "没有"),
        ("x" * 3000 + " train", "did nothing"),
    ],
)
def test_an_order_that_is_not_carried_out_exits_with_1(request_: str, said: str):
    told = rl_cli(request_, "--yes")
    assert told.code == 1, told.out
    assert said in told.out
    assert rl_cli("runs", "list", "--json").rows() == []


@pytest.mark.parametrize(
    "request_", ["don't train yet", "how would I train GSM8K?", "help me", "list environments"]
)
def test_an_answer_exits_with_0(request_: str):
    assert rl_cli(request_).code == 0
    assert rl_cli("runs", "list", "--json").rows() == []


def test_hostile_text_reaches_the_terminal_as_text(home: Path, tmp_path: Path):
    (tmp_path / "my_envs").mkdir()
    (tmp_path / "my_envs" / "bad.py").write_text(
        "from environments.base import Environment\n\n"
        "class Bad(Environment):\n    name = 'bad'\n    description = 'red \\x1b[31m \\x07 text'\n"
    )
    play = tmp_path / "play.yaml"
    play.write_text('- warm_start: {accuracy: 0.2, note: "\\e[31mnote"}\n- fail: "\\e[2J\\e]0;pwn\\a"\n')
    rl_cli("runs", "start", "gsm8k-mini", "--backend", f"replay:{play}")
    outputs = [
        rl_cli(*words, cwd=tmp_path)
        for words in (
            ["envs", "list"],
            ["runs", "watch", "latest"],
            ["runs", "list"],
            ["runs", "show", "latest"],
        )
    ]
    for told in [*outputs, rl_cli("runs", "report", "latest")]:
        assert "\x1b" not in told.out + told.err
        assert "\x07" not in told.out + told.err
    assert "red" in outputs[0].out
    assert "pwn" in outputs[1].out
