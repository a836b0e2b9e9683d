"""Options that several `rl-cli data` commands share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from rl_cli.cli.output import say
from rl_cli.core.errors import BadUsage, WorkFailed, did_you_mean

if TYPE_CHECKING:
    from rl_cli.data.hygiene.pii import PiiKind

InputOption = Annotated[
    str, typer.Option("--input", "-i", metavar="FILE|NAME", help="A JSONL file, or a batch by its name.")
]
MOST_BAD_LINES = 20
"""That are told one by one."""
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output where it exists.")]
PiiOption = Annotated[
    str | None,
    typer.Option(
        "--pii",
        metavar="KINDS",
        help="Mask personal data too: 'all', or some of email,phone,card,iban,ip.",
        show_default=False,
    ),
]


def pii_kinds(given: str | None) -> tuple[PiiKind, ...]:
    """The kinds that are meant by `all` or a list with commas; none for None.

    Raises:
        BadUsage: There is no such kind.
    """
    from rl_cli.data.hygiene.pii import KINDS

    if given is None:
        return ()
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in (*KINDS, "all"):
            raise BadUsage(f"unknown kind of personal data '{name}'", did_you_mean(name, ("all", *KINDS)))
    return KINDS if "all" in names else tuple(kind for kind in KINDS if kind in names)


class BadLines:
    """Lines that cannot be read: the first ones are told as they come, all are counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int, reason: str) -> None:
        self.count += 1
        if self.count <= MOST_BAD_LINES:
            say(f"line {number}: {reason}", error=True)

    def fail(self) -> None:
        """Raises WorkFailed where there were some: the work is incomplete."""
        if more := max(0, self.count - MOST_BAD_LINES):
            say(f"... and {more:,} more", error=True)
        if self.count:
            raise WorkFailed(f"{self.count:,} line{'s' if self.count > 1 else ''} could not be read")


def counted(counts: Counter[str]) -> str:
    """`3 email, 1 secret`."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
