"""What every command module builds on: its typer app, the shared options, running async code."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

import typer

T = TypeVar("T")

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON: one object, or one per line for lists.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Approve every call without asking.")]


def group(help_text: str) -> typer.Typer:
    """An app with subcommands, even if it has only one."""
    app = _app(help_text, no_args_is_help=True)
    app.callback()(_nothing)
    return app


def single() -> typer.Typer:
    """An app that is one command: register exactly one function with @app.command()."""
    return _app(None, no_args_is_help=False)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end; Ctrl-C cancels it and raises KeyboardInterrupt."""
    import asyncio

    return asyncio.run(work)


def _app(help_text: str | None, no_args_is_help: bool) -> typer.Typer:
    return typer.Typer(
        help=help_text,
        no_args_is_help=no_args_is_help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _nothing() -> None:
    pass
