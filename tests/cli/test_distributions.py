"""`rl-cli data distributions`, and what doctor says of sandboxes and toolsets."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.cli import rl_cli


def test_lists_what_each_distribution_contains_here() -> None:
    rows = rl_cli("data", "distributions", "--json").rows()
    assert [row["name"] for row in rows][:3] == ["default", "research", "science"]
    assert all(row["source"] == "shipped" and row["description"] for row in rows)
    default = {each["name"]: each for each in rows[0]["toolsets"]}
    assert default["math"]["usable"]
    assert "not implemented" in default["vision"]["reason"]
    table = rl_cli("data", "distributions").out
    assert all(row["name"] in table for row in rows)


def test_shows_one_with_the_reason_for_what_is_missing() -> None:
    keys = {"SEARXNG_URL": "", "TAVILY_API_KEY": "", "BRAVE_API_KEY": ""}
    shown = rl_cli("data", "distributions", "terminal_web", **keys)
    assert shown.code == 0
    assert "terminal" in shown.out
    row = json.loads(rl_cli("data", "distributions", "terminal_web", "--json", **keys).out)
    assert "TAVILY_API_KEY" in next(each["reason"] for each in row["toolsets"] if each["name"] == "web")
    assert "did you mean terminal_web" in rl_cli("data", "distributions", "terminal-web").err


def test_lists_a_persons_own(tmp_path: Path) -> None:
    (tmp_path / "rl-cli.yaml").write_text("toolsets_file: mine.yaml\n")
    (tmp_path / "mine.yaml").write_text("distributions: {sums: {toolsets: {math: 100}}}\n")
    row = json.loads(rl_cli("data", "distributions", "sums", "--json", cwd=tmp_path).out)
    assert (row["source"], row["toolsets"][0]["name"]) == ("yours", "math")
    (tmp_path / "mine.yaml").write_text("distributions: {sums: {toolsets: {maths: 100}}}\n")
    broken = rl_cli("data", "distributions", cwd=tmp_path)
    assert broken.code == 2
    assert "did you mean math" in broken.err


def test_doctor_names_every_kind_of_sandbox_and_toolset() -> None:
    checks = {check["name"]: check for check in json.loads(rl_cli("doctor", "--json").out)["checks"]}
    for kind in ("local", "bubblewrap", "docker", "ssh", "apptainer", "modal", "daytona"):
        assert checks[f"sandbox '{kind}'"]["state"] in ("ok", "absent")
        assert checks[f"sandbox '{kind}'"]["detail"]
    assert checks["sandbox 'local'"]["state"] == "ok"
    assert "not implemented" in checks["toolset 'vision'"]["detail"]
    assert checks["toolset 'math'"]["state"] == "ok"
    assert "toolset 'rl'" not in checks


def test_tools_are_called_in_the_working_folder(tmp_path: Path) -> None:
    written = rl_cli(
        "tools", "call", "write_file", '{"path": "a.txt", "content": "x"}', "--yes", cwd=tmp_path
    )
    assert written.code == 0, written.err
    assert (tmp_path / "a.txt").read_text() == "x"
    outside = rl_cli("tools", "call", "read_file", '{"path": "/etc/passwd"}', cwd=tmp_path)
    assert json.loads(outside.out)["error"]["type"] == "outside"
