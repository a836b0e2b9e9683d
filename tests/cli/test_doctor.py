from __future__ import annotations

import json
import os
from pathlib import Path

from tests.e2e.cli import rl_cli


def test_names_what_there_is_and_hides_the_key(home: Path) -> None:
    key = "secret" * 8
    outcome = rl_cli("doctor", "--json", WANDB_API_KEY=key)
    report = json.loads(outcome.out)
    checks = {check["name"]: check for check in report["checks"]}
    assert outcome.code == 0
    assert {
        "python",
        "extra 'train'",
        "processor",
        "memory",
        "GPU",
        "home",
        "W&B",
        "keys",
        "model",
    } <= checks.keys()
    assert checks["model"]["detail"].startswith("builtin/operator")
    assert str(home) in checks["home"]["detail"]
    assert "secret" not in outcome.out + rl_cli("doctor", WANDB_API_KEY=key).out


def test_a_missing_extra_is_absent_with_its_command(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "from rl_cli.core.extras import EXTRAS; EXTRAS['train'] = ('no_such_module',)\n"
        "from rl_cli.cli.main import main; main(['doctor', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    check = next(c for c in json.loads(done.stdout)["checks"] if c["name"] == "extra 'train'")
    assert (done.returncode, check["state"], check["remedy"]) == (
        0,
        "absent",
        "pip install 'rl-flywheel[train]'",
    )


def test_what_is_broken_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = rl_cli("doctor", "--json", RL_CLI_HOME=str(tmp_path / "file"), RL_CLI_MODEL="no/such")
    broken = [c for c in json.loads(outcome.out)["checks"] if c["state"] == "broken"]
    assert outcome.code == 1
    assert [c["name"] for c in broken] == ["home", "model"]
    assert all(c["remedy"] for c in broken)


def test_says_which_keys_are_set_and_where_the_model_would_answer(tmp_path: Path) -> None:
    key = "sk-planted-0123456789"
    outcome = rl_cli("doctor", "--json", cwd=tmp_path, OPENAI_API_KEY=key, OPENAI_BASE_URL="http://box:1/v1")
    checks = {check["name"]: check for check in json.loads(outcome.out)["checks"]}
    assert checks["keys"]["detail"] == "set: OPENAI_API_KEY"
    assert checks["model"]["detail"].startswith("openai/")
    assert "http://box:1/v1" in checks["model"]["detail"]
    assert key not in outcome.out
    (tmp_path / "rl-cli.yaml").write_text("allow_unknown_prices: true\n")
    broken = rl_cli("doctor", "--json", cwd=tmp_path)
    assert broken.code == 1
    assert "rl-cli config trust" in broken.out


def test_names_the_server_of_w_and_b_and_a_key_that_cannot_be_one() -> None:
    def check(**environment: str) -> dict[str, str]:
        rows = json.loads(rl_cli("doctor", "--json", **environment).out)["checks"]
        return next(row for row in rows if row["name"] == "W&B")

    address = {"WANDB_BASE_URL": "http://user:pw@127.0.0.1:9"}
    good = check(WANDB_API_KEY="a" * 40, **address)
    assert (good["state"], "at http://127.0.0.1:9 (WANDB_BASE_URL)" in good["detail"]) == ("ok", True)
    assert "pw" not in good["detail"]
    assert "api.wandb.ai" not in check(WANDB_API_KEY="a" * 40)["detail"]
    short = check(WANDB_API_KEY="short", **address)
    assert (short["state"], "40 characters" in short["detail"]) == ("broken", True)


def test_spending_that_cannot_be_read_and_an_address_that_is_none_are_broken(home: Path) -> None:
    home.mkdir()
    (home / "spending.db").write_bytes(bytes(range(256)) * 40)
    for address in ("ftp://x", "http://[", "localhost:8080"):
        outcome = rl_cli("doctor", "--json", WANDB_BASE_URL=address, WANDB_API_KEY="secret" * 8)
        broken = {c["name"]: c for c in json.loads(outcome.out)["checks"] if c["state"] == "broken"}
        assert outcome.code == 1
        assert broken.keys() == {"spending", "W&B"}
        assert "spending.db is damaged" in broken["spending"]["detail"]
        assert f"{address}, is no http:// or https:// address" in broken["W&B"]["detail"]


def test_a_pipe_in_a_run_hangs_nothing(home: Path) -> None:
    (home / "runs" / "20260101-000000-odd").mkdir(parents=True)
    os.mkfifo(home / "runs" / "20260101-000000-odd" / "state.json")
    assert rl_cli("doctor", "--json", timeout=60).code == 0
    assert "a pipe or a device" in rl_cli("runs", "list", "--json", timeout=60).out
