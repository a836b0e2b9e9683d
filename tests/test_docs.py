"""What the documents name exists, and what exists is documented (field report OPS-26)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from rl_cli.cli.main import COMMANDS
from tests.e2e.cli import rl_cli
from tools.dispatcher import tool_specs

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "prompts").glob("*.md"),
]
TOOL = re.compile(r"\brl_(?!cli\b|flywheel\b)[a-z]+(?:_[a-z]+)*\b(?!\.py)")
COMMAND = re.compile(r"\brl-cli ([a-z]+)(?: ([a-z]+))?")


@cache
def help_of(command: str) -> str:
    told = rl_cli(command, "--help")
    assert told.code == 0, told.err
    return told.out


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_ops_26_every_tool_and_command_in_a_document_exists(document: Path):
    text = document.read_text("utf-8")
    tools = set(tool_specs(("rl",)))
    assert set(TOOL.findall(text)) <= tools
    for command, subcommand in COMMAND.findall(text):
        if command not in COMMANDS:
            assert f"rl-cli {command}" not in re.findall(r"`(rl-cli [a-z]+)", text), f"no command {command}"
            continue
        if subcommand and "Commands:" in help_of(command):
            listed = help_of(command).partition("Commands:")[2]
            assert re.search(rf"^\s+{subcommand}\b", listed, re.MULTILINE), f"rl-cli {command} {subcommand}"


def test_ops_26_every_tool_and_command_is_documented():
    text = "".join(path.read_text("utf-8") for path in DOCUMENTS)
    assert [name for name in tool_specs(("rl", "wandb", "data")) if name not in text] == []
    assert [name for name in COMMANDS if f"rl-cli {name}" not in text] == []
