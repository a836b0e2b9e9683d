"""Runs `rl-cli data compress` against a server that counts what it is asked."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rl_cli.cli import main
from tests.e2e.cli import Outcome, command
from tests.wire.server import WireServer

MODEL = "openai/summary-model"


def words(server: WireServer, folder: Path, tokenizer: Path, *more: str) -> list[str]:
    return [
        *("data", "compress", "--input", str(folder / "in.jsonl"), "--output", str(folder / "out.jsonl")),
        *("--tokenizer", str(tokenizer), "--max-tokens", "2000", "--summary-tokens", "200", "--json"),
        *("--summarizer", MODEL, "--base-url", server.openai_url, *more),
    ]


def run(server: WireServer, folder: Path, tokenizer: Path, *more: str) -> Outcome:
    """In this process: the SDK is loaded once."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(words(server, folder, tokenizer, *more))
    return Outcome(code, out.getvalue(), err.getvalue())


def start(server: WireServer, folder: Path, tokenizer: Path, *more: str) -> subprocess.Popen[bytes]:
    """In a process of its own, which can be killed."""
    return subprocess.Popen(
        command(*words(server, folder, tokenizer, *more)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(sys.modules["tests"].__path__[0]).parent,
    )


def wait_for(server: WireServer, requests: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server has been asked so often."""
    while len(server.requests) < requests:
        assert process.poll() is None, process.returncode
        time.sleep(0.005)


def asked(server: WireServer) -> Counter[str]:
    """What the server was asked, and how often."""
    bodies = (request.body for request in server.requests)
    return Counter(json.dumps(body["messages"]) for body in bodies if body)  # none: cut off by a kill


def paid(folder: Path) -> list[dict[str, Any]]:
    """The side ledger; a torn last line does not count."""
    path = folder / "out.jsonl.compress" / "summaries.jsonl"
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]
