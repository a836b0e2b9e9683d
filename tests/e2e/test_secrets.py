"""Secrets planted wherever a person's text comes in: none reaches a file under RL_CLI_HOME, or a terminal."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rl_cli.core.redaction import MASK, redact_text
from rl_cli.core.secret_values import base64_forms, forms
from rl_cli.runs.store import RunDir, find_run
from tests.e2e.cli import Outcome, installed
from tests.runs.kit import end_all, identity, steps, until, until_over

KEY = "sk-test-AAAABBBBCCCCDDDD"
TOKEN = 'zq81-77ab-"very"\\secret'
FOREIGN = "hf_" + "Ab3d" * 6
"""In no variable: known by its looks only."""
PLANTED = {"OPENAI_API_KEY": KEY, "ACME_TOKEN": TOKEN}
SECRETS = [KEY, TOKEN, FOREIGN]

ENVIRONMENT = f"""
import os, subprocess
from environments.gsm8k_mini import Gsm8kMini
from rl_cli.core.messages import user

class Leaky(Gsm8kMini):
    name = "leaky"
    description = {f"Asks for things; made with {FOREIGN} and {TOKEN}"!r}
    profiles = ("cpu-demo",)
    stand_in = None

    def prompt(self, task):
        print("loading with", {TOKEN!r}, flush=True)
        os.system("echo past Python: " + {KEY!r})
        shown = subprocess.run("printenv; printenv | base64", shell=True, stdout=-1, text=True).stdout
        return [user("{KEY} " + {TOKEN!r} + " " + shown)]

    async def reward(self, task, rollout, ctx):
        "The reward, not {KEY}."
        return await super().reward(task, rollout, ctx)
"""
PLAY = [
    {"log": f"connecting with {KEY} and {TOKEN}"},
    steps(4, every=0.0),
    {
        "sample": {
            "prompt": f"use {KEY}",
            "completion": f"Bearer {FOREIGN} {TOKEN}",
            "reward": 0.5,
        }
    },
    {"crash": f"401 for {KEY} of org-ABCDEF123, password={TOKEN}"},
]
SCRIPT = [
    {
        "when": {"contains": "train"},
        "text": f"I look at it with {KEY} and {json.dumps(TOKEN)}.",
        "tool_calls": [{"name": "rl_describe_environment", "arguments": {"name": "leaky"}}],
    },
    {
        "when": {"last_tool": "rl_describe_environment"},
        "text": "{{ rl_describe_environment.example.messages.0.content }}",
        "tool_calls": [{"name": "rl_select_environment", "arguments": {"name": "leaky"}}],
    },
    {
        "when": {"last_tool": "rl_select_environment"},
        "tool_calls": [
            {
                "name": "rl_edit_config",
                "arguments": {"changes": {"backend.name": "replay", "backend.file": "PLAY", "grpo.steps": 4}},
            }
        ],
    },
    {"when": {"last_tool": "rl_edit_config"}, "tool_calls": [{"name": "rl_start_training"}]},
    {
        "when": {"last_tool": "rl_start_training"},
        "tool_calls": [
            {
                "name": "rl_check_status",
                "arguments": {"run_id": "{{ rl_start_training.run_id }}", "wait": True},
            },
            {"name": "rl_get_results", "arguments": {"run_id": "{{ rl_start_training.run_id }}"}},
            {"name": f"no_such_tool_{FOREIGN}", "arguments": {"key": KEY, "text": TOKEN}},
        ],
    },
    {"text": f"It failed with {TOKEN}, in base64 {b64encode(TOKEN.encode()).decode()}."},
]


@pytest.fixture
def folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with an environment that talks too much, in a shell that holds keys."""
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "my_envs").mkdir()
    (tmp_path / "my_envs" / "leaky.py").write_text(ENVIRONMENT)
    play = tmp_path / "play.yaml"
    play.write_text(yaml.safe_dump(PLAY))
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(SCRIPT).replace("PLAY", str(play)))
    yield tmp_path
    end_all(home)


def leaks(text: str) -> list[str]:
    """The planted secrets in `text`, in any of their forms."""
    found = [form for secret in SECRETS for form in forms(secret) if form in text]
    joined = text.replace("\\n", "").replace("\n", "")
    return found + [form for secret in SECRETS for form in base64_forms(secret) if form in joined]


def assert_clean(home: Path, *outcomes: Outcome) -> None:
    for outcome in outcomes:
        assert leaks(outcome.out) == []
        assert leaks(outcome.err) == []
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert leaks(path.read_bytes().decode("latin-1")) == [], path
        assert leaks(str(path)) == []


def over(run: RunDir) -> RunDir:
    until_over(run)
    until(lambda: not identity(run, "supervisor").alive())
    return run


def test_sec_01_a_whole_conversation_and_its_run_keep_no_secret(home: Path, folder: Path) -> None:
    request = f"train leaky with {KEY}, {TOKEN} and {FOREIGN}"
    model = f"scripted/{folder / 'script.yaml'}"
    asked = installed("ask", request, "--model", model, "--yes", "--json", cwd=folder)
    kinds = [row["kind"] for row in asked.rows()]
    assert MASK in asked.out, asked.err
    assert kinds
    run = over(find_run(home, "latest"))
    assert run.state()["state"] == "failed"
    shown = installed("runs", "show", "latest")
    as_json = installed("runs", "show", "latest", "--json")
    logs = installed("runs", "logs", "latest")
    report = installed("runs", "report", "latest")
    supervisor = installed("runs", "logs", "latest", "--process", "supervisor")
    assert f"connecting with {MASK} and {MASK}" in logs.out
    assert f"401 for {MASK} of {MASK}" in as_json.rows()[0]["reason"]
    assert [sample["reward"] for sample in run.samples()] == [0.5]
    assert run.config().environment.name == "leaky"
    text = installed("ask", request, "--model", model, "--yes", cwd=folder)
    over(find_run(home, "latest"))
    sessions = "".join(path.read_text() for path in (home / "sessions").glob("*.jsonl"))
    assert MASK in sessions
    assert_clean(home, asked, shown, as_json, logs, report, supervisor, text)


def test_sec_02_what_is_written_past_python_is_masked_when_the_run_is_over(home: Path, folder: Path) -> None:
    (folder / "play.yaml").write_text(yaml.safe_dump([steps(500, every=0.05)]))
    started = installed("runs", "start", "leaky", "--backend", f"replay:{folder / 'play.yaml'}", cwd=folder)
    assert started.code == 0, started.err
    run = find_run(home, "latest")
    until(lambda: run.state()["state"] == "running")
    with run.log_path("trainer").open("a") as log:  # as a C library would
        log.write(f"fatal: {TOKEN} {KEY}\n")
    during = installed("runs", "logs", "latest")
    assert f"fatal: {MASK} {MASK}" in during.out
    stopped = installed("runs", "stop", "latest", "--now")
    over(run)
    assert "fatal: [redacted]" in run.log_path("trainer").read_text()
    assert_clean(home, started, during, stopped)


def test_sec_10_a_persons_environment_is_handed_no_key_of_a_provider(home: Path, folder: Path) -> None:
    described = installed("envs", "show", "leaky", "--json", cwd=folder)
    assert described.code == 0, described.err
    said = described.rows()[0]["example"]["messages"][0]["content"]
    assert "OPENAI_API_KEY" not in said
    assert "ACME_TOKEN" not in said
    assert "HOME=" in said
    listed = installed("envs", "list", cwd=folder)
    shown = installed("envs", "show", "leaky", cwd=folder)
    broken = folder / "my_envs" / "broken.py"
    broken.write_text(ENVIRONMENT.replace('"leaky"', '"broken"').replace("print(", "raise KeyError("))
    failed = installed("envs", "show", "broken", cwd=folder)
    debugged = installed("--debug", "envs", "show", f"broken-{FOREIGN}", cwd=folder)
    assert failed.code != 0
    assert "Traceback" in debugged.err
    for outcome in (described, listed, shown, failed, debugged):
        assert leaks(outcome.out + outcome.err) == []


def test_sec_10_only_the_uploader_gets_the_key_of_w_and_b(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    (folder / "play.yaml").write_text(yaml.safe_dump([steps(500, every=0.05)]))
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "5" * 39 + "a")
    monkeypatch.setenv("WANDB_DEBUG", "true")
    start = ("runs", "start", "leaky", "--backend", f"replay:{folder / 'play.yaml'}")
    started = installed(*start, "--set", "tracking.wandb=live", cwd=folder)
    run = find_run(home, "latest")
    until(lambda: any(event["kind"] == "wandb" for event in run.events()))
    names = {}
    for process in ("recorder", "uploader"):
        environment = Path(f"/proc/{identity(run, process).pid}/environ").read_bytes().split(b"\0")
        names[process] = {variable.partition(b"=")[0].decode() for variable in environment}
    assert "WANDB_API_KEY" not in names["recorder"]
    assert {"WANDB_API_KEY", "WANDB_BASE_URL", "PATH"} <= names["uploader"]
    assert not (names["recorder"] | names["uploader"]) & {*PLANTED, "WANDB_DEBUG"}
    stopped = installed("runs", "stop", "latest", "--now")
    over(run)
    assert_clean(home, started, stopped)


def test_the_planted_secrets_are_masked_at_all(folder: Path) -> None:
    """Guards the tests above: with these values in the environment, each is known."""
    assert os.environ["ACME_TOKEN"] == TOKEN
    assert redact_text(f"{KEY} {FOREIGN}") == f"{MASK} {MASK}"
