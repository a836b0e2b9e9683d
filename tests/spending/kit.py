"""Ledgers to test with, and processes that spend."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.policies.base import Usage
from rl_cli.core.processes import ProcessIdentity
from rl_cli.core.settings import Settings
from rl_cli.spending.ledger import Ledger, Totals
from rl_cli.spending.limits import Limits
from rl_cli.spending.meter import SessionMeter

ROOT = Path(__file__).parents[2]


class Clock:
    """A clock that goes where it is put."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def cents(model: str, usage: Usage) -> float | None:
    """A cent per token of the answer, a tenth of that per token of the question; `x/unknown` has no price."""
    if model == "x/unknown":
        return None
    return usage.input_tokens * 0.001 + usage.output_tokens * 0.01


def meter(home: Path, id: str = "s", allow_unknown: bool = False, **limits: Mapping[str, float]) -> Any:
    """(a meter of `cents`, the list of its warnings)."""
    warnings: list[str] = []
    made = SessionMeter(Ledger(home), Limits(**limits), id, cents, allow_unknown, warnings.append)
    return made, warnings


def totals(home: Path, scope: str = "session", name: str = "s") -> Totals:
    with Ledger(home).writing() as books:
        return books.totals(scope, name)


def settings(**values: Any) -> Settings:
    return Settings(**values)


def dead() -> ProcessIdentity:
    """A process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity.of(process.pid)
    process.communicate(b"\n")
    return identity


def start(script: str, *args: str) -> subprocess.Popen[str]:
    """A process of its own that runs `script`, with this module's names."""
    code = "from tests.spending.kit import *\nimport os, sys, time, random\n" + script
    argv = [sys.executable, "-c", code, *args]
    return subprocess.Popen(argv, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
