from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.cli import rl_cli


def test_show_says_what_holds_and_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "rl-cli.yaml").write_text("model: scripted/x.yaml\n")
    shown = json.loads(rl_cli("config", "show", "--json", cwd=tmp_path).out)
    assert (shown["model"], shown["seed"], shown["environments_dir"]) == ("scripted/x.yaml", None, "my_envs")
    origins = json.loads(rl_cli("config", "show", "--origin", "--json", cwd=tmp_path, RL_CLI_SEED="7").out)
    assert origins["model"]["origin"] == str(tmp_path / "rl-cli.yaml")
    assert origins["seed"] == {"value": 7, "origin": "environment variable RL_CLI_SEED"}
    assert origins["home"]["origin"] == "environment variable RL_CLI_HOME"
    text = rl_cli("config", "show", "--origin", cwd=tmp_path).out
    assert "scripted/x.yaml" in text
    assert "default" in text


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"model: a/b\nseed: 3\n", 0, "good settings (model, seed)"),
        (b"", 0, "none set"),
        (b"modle: a/b\n", 2, "did you mean model?"),
        (b"seed: x\n", 2, "'seed' must be a whole number"),
        (b"model: {\n", 2, "not valid YAML"),
        (b"\xff\xfe\x00", 2, "not UTF-8"),
        (b"grpo: " + b"[" * 5000, 2, "nested more than"),
        (b"environment: {name: gsm8k-mini}\ngrpo: {stps: 3}\n", 2, "steps"),
        (b"environment: {name: gsm8k-mini}\ngrpo: {steps: 3}\n", 0, "learns gsm8k-mini"),
    ],
)
def test_check_reads_settings_and_configs_of_runs(
    tmp_path: Path, content: bytes, code: int, words: str
) -> None:
    path = tmp_path / "some.yaml"
    path.write_bytes(content)
    outcome = rl_cli("config", "check", str(path))
    assert outcome.code == code, outcome
    said = outcome.out if code == 0 else outcome.err
    assert words in said
    assert str(path) in said
    assert said.count("\n") == 1


def test_a_wrong_settings_file_stops_every_command_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "rl-cli.yaml").write_text("modle: x\n")
    for words in (["config", "show"], ["ask", "list the environments"]):
        outcome = rl_cli(*words, cwd=tmp_path)
        assert outcome.code == 2
        assert "rl-cli.yaml" in outcome.err
