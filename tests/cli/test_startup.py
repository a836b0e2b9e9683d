from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "torch",
    "wandb",
    "openai",
    "anthropic",
    "trl",
    "transformers",
    "datasets",
    "numpy",
    "rich",
}
DUMP = """
import sys
from rl_cli.cli.main import run
code = run(sys.argv[1:])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["runs", "list"],
        ["runs", "list", "--json"],
        ["tools", "list"],
        ["config", "show"],
        ["envs", "--help"],
        ["parse", "--help"],
    ],
)
def test_what_must_start_fast_imports_nothing_heavy(argv: list[str]) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", DUMP, *argv], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stderr.splitlines()[-1].split())
