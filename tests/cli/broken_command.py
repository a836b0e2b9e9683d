"""A command that goes wrong in the ways that a command can."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from rl_cli.cli.app import single

app = single()


@app.command()
def broken(
    extra: Annotated[bool, typer.Option("--extra")] = False,
    wait: Annotated[bool, typer.Option("--wait")] = False,
    said: Annotated[bool, typer.Option("--said")] = False,
) -> None:
    """Goes wrong."""
    if extra:
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    if wait:
        print("waiting", flush=True)
        for _ in range(600):  # a signal just before a sleep is seen after it
            time.sleep(0.1)
    if said:
        print("this much was said")
    raise KeyError("x")
