"""Placeholder; replaced below."""

from rl_cli.runs.run_dir import RunDir


def write_report(run: RunDir) -> None: ...
