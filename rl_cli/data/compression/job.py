"""What is compressed, and how."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rl_cli.core.errors import BadUsage
from rl_cli.data.compression.counting import Counting, Uncountable
from rl_cli.data.compression.plan import Limits
from rl_cli.data.compression.rows_in import Place, check_inputs
from rl_cli.data.compression.summarizers import as_turn

LEAST_TOKENS = 200


@dataclass(frozen=True)
class Compression:
    """Files of rows that are to fit some limits."""

    inputs: tuple[Path, ...]
    output: Path
    """A dry run does not look at it."""
    limits: Limits = field(default_factory=Limits)
    concurrency: int = 50
    """Requests at one time, at most."""
    summary_seconds: float = 300.0
    """That a summary may take."""
    over_limit: Literal["keep", "split"] = "keep"
    """Rows that stay over the limit: kept among the others, or in a file of their own."""
    sample_percent: float = 100.0
    """Only so many of a hundred rows are taken, drawn by `seed`."""
    seed: int = 0

    @property
    def split_off(self) -> Path | None:
        """The file of rows over the limit; None where they are kept among the others."""
        name = f"{self.output.stem}.over_limit{self.output.suffix}"
        return self.output.with_name(name) if self.over_limit == "split" else None

    @property
    def settings(self) -> dict[str, Any]:
        """What makes another output."""
        same = {"inputs", "output", "concurrency", "summary_seconds"}
        return {name: value for name, value in asdict(self).items() if name not in same}

    def draws(self, place: Place) -> bool:
        """Whether a row is among those that are taken: by its place and the seed alone."""
        if self.sample_percent >= 100:
            return True
        digest = hashlib.sha256(f"{self.seed}/{place.file}/{place.line}".encode()).digest()
        return int.from_bytes(digest[:8]) / 2**64 * 100 < self.sample_percent


def checked(job: Compression) -> list[dict[str, Any]]:
    """What the inputs are known by.

    Raises:
        BadUsage: The job makes no sense, or an input cannot be taken.
    """
    limits = job.limits
    if limits.max_tokens < LEAST_TOKENS:
        raise BadUsage(f"no conversation fits {limits.max_tokens} tokens", f"at least {LEAST_TOKENS}")
    if limits.keep_last < 0:
        raise BadUsage(f"{limits.keep_last} turns at the end cannot be kept", "0 or more")
    if limits.summary_tokens < 1 or job.concurrency < 1 or not job.summary_seconds > 0:
        raise BadUsage("a summary's tokens, its seconds and the requests at one time are more than 0")
    if not 0 < job.sample_percent <= 100:
        raise BadUsage(f"{job.sample_percent:g} % of the rows cannot be taken", "more than 0, at most 100")
    known = check_inputs(job.inputs)
    if not any(file["size"] for file in known):
        raise BadUsage(f"{', '.join(map(str, job.inputs))}: no rows")
    return known


async def check_room(limits: Limits, counting: Counting) -> None:
    """Whether a summary of its length says anything beside its heading.

    Raises:
        BadUsage: It does not, or the tokenizer fails at plain text.
    """
    try:
        (heading,) = await counting.count([as_turn("", 1_000, 0)])
    except Uncountable as error:
        raise BadUsage(f"the tokenizer fails at plain text: {error}") from error
    if heading * 2 > limits.per_summary:
        raise BadUsage(
            f"a summary of {limits.per_summary} tokens leaves no room for words: its heading takes {heading}",
            "more --summary-tokens, or more --max-tokens, a quarter of which a summary may have",
        )
