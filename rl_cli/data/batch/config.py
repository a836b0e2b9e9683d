"""The settings of a batch, and which of them must stay as they are for as long as it lives."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from rl_cli.config.tree import Section
from rl_cli.core.errors import did_you_mean
from rl_cli.data.errors import Unconvertible
from tools.sandboxes.kinds import DEFAULT, KINDS

NAME = re.compile(r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z))[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Of a batch: one part of a path on every system."""
MOST = 1_000_000
DAY_SECONDS = 86_400

FREE = frozenset(
    {"concurrency", "item_seconds", "max_samples", "give_up_after", "executor", "ray_address", "eval_every"}
)
"""What a later start of the same batch may change: how the work is done, not what comes of it."""


class SandboxSection(Section):
    kind: str = DEFAULT
    """Where commands run, as docs/sandboxes.md lists the kinds."""
    image: str | None = None
    """What docker, apptainer, modal and daytona start from; an item's own image goes before it."""
    network: bool = False
    """Whether commands may use the network."""
    options: dict[str, str] = Field(default_factory=dict)
    """What only one kind knows, such as `host` of ssh."""

    @field_validator("kind")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in KINDS:
            raise ValueError(f"must be a kind of sandbox ({did_you_mean(value, list(KINDS))})")
        return value


class BatchConfig(Section):
    input: str = Field(min_length=1)
    """A JSONL, JSON, CSV or Parquet file, a folder, or a dataset of the hub: OWNER/NAME[:CONFIG][:SPLIT]."""
    name: str
    """The batch, and its folder."""
    model: str | None = None
    """The model that is asked, as provider/name; null: as for the assistant."""
    base_url: str | None = None
    """The address of the model's server; null: its provider's."""
    agent: Literal["loop", "terminal"] = "loop"
    """loop offers the toolsets; terminal offers one terminal and a call that finishes."""
    agent_image: str | None = None
    """terminal only: what its sandbox starts from; null: sandbox.image."""
    toolsets: list[str] | None = None
    """What each item is offered; [] offers nothing."""
    distribution: str | None = None
    """Toolsets drawn for each item (`rl-cli data distributions`); `default` where neither is set."""
    sandbox: SandboxSection = SandboxSection()

    samples: int = Field(default=1, ge=1, le=10_000)
    """Answers to each item; its own `n` goes before it."""
    best_of: int | None = Field(default=None, ge=2, le=10_000)
    """Sample each item so often, and keep the answer with the best score."""
    target: int | None = Field(default=None, ge=1, le=10_000)
    """Sample each item until so many answers reach min_score, and keep those."""
    max_samples_per_prompt: int | None = Field(default=None, ge=1, le=10_000)
    """With target: most samples of an item; null: four times the target."""
    min_score: float | None = None
    """Answers below it are discarded."""
    score: str | None = None
    """The environment that judges each answer, as `rl-cli envs list` names it."""

    seed: int = Field(default=0, ge=0, le=2**53)
    """Of the toolset draws, and of sampling where the server takes one."""
    temperature: float | None = Field(default=None, ge=0, le=100)
    """Of sampling; null: the server's default."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Of sampling; null: the server's default."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=MOST)
    """New tokens of one completion; null: the server's default."""
    reasoning_effort: str | None = Field(default=None, pattern="^[a-z0-9_]{1,20}$")
    """As the server names its efforts; null: the server's default."""
    system_prompt: str | None = None
    """Said to the model before all else, and not stored in rows."""
    prefill: list[dict[str, Any]] = Field(default_factory=list)
    """Messages before each prompt, stored in rows."""

    max_turns: int = Field(default=50, ge=1, le=10_000)
    """Completions of one sample."""
    max_tokens: int | None = Field(default=None, ge=1, le=2**53)
    """Sampled tokens of one sample; null: no limit."""
    item_seconds: float = Field(default=1800, gt=0, le=30 * DAY_SECONDS)
    """How long one sample may take."""
    concurrency: int = Field(default=8, ge=1, le=10_000)
    """Most samples in flight; fewer while the provider says that it is too much."""
    give_up_after: int = Field(default=10, ge=1, le=MOST)
    """Stop when the provider has failed so many times in a row."""
    max_samples: int | None = Field(default=None, ge=1, le=2**53)
    """Take only so many items of the input, to try it out; null: all."""
    eval_every: int | None = Field(default=None, ge=1, le=MOST)
    """Ask the held-out items each time so many items have ended; needs score."""
    eval_held_out: int = Field(default=0, ge=0, le=MOST)
    """So many of the first items are kept for evaluation, and never become rows."""
    executor: Literal["asyncio", "ray"] = "asyncio"
    """asyncio: this process; ray: actors of a cluster."""
    ray_address: str | None = None
    """ray only: the cluster; null starts one here."""
    redact: bool = True
    """Mask secrets in what is stored."""

    @property
    def most_samples(self) -> int:
        """Samples of one item that has no `n` of its own, at most."""
        if self.target is not None:
            return self.max_samples_per_prompt or 4 * self.target
        return self.best_of or self.samples

    @field_validator("name")
    @classmethod
    def _is_one_part(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError("must be letters, digits, . _ and -, at most 100, the first a letter or digit")
        return value

    @field_validator("prefill")
    @classmethod
    def _are_messages(cls, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        from rl_cli.data.canonical import canonical

        try:
            return [dict(message) for message in canonical(value).messages] if value else []
        except Unconvertible as error:
            raise ValueError(f"must be messages: {error}") from None

    @model_validator(mode="after")
    def _rules(self) -> BatchConfig:
        """Rules across fields; each message names every field it is about."""
        if self.toolsets is None and self.distribution is None:
            self.distribution = "default"
        problems = [problem for broken, problem in self._problems() if broken]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> list[tuple[bool, str]]:
        judged = self._set("best_of", "target", "min_score", "eval_every")
        several = self._set("best_of", "target")
        several += ["samples"] if self.samples > 1 else []
        return [
            (
                self.toolsets is not None and self.distribution is not None,
                "toolsets and distribution are both set: leave one out",
            ),
            (len(several) > 1, f"{' and '.join(several)} are both set: leave one out"),
            (bool(judged) and self.score is None, f"{', '.join(judged)} needs score, an environment"),
            (self.target is not None and self.min_score is None, "target needs min_score"),
            (
                self.target is not None and self.most_samples < self.target,
                f"max_samples_per_prompt ({self.most_samples}) is below target ({self.target})",
            ),
            (
                self.target is None and self.max_samples_per_prompt is not None,
                "max_samples_per_prompt needs target",
            ),
            (
                (self.eval_every is None) != (self.eval_held_out == 0),
                "eval_every and eval_held_out need each other",
            ),
            (self.ray_address is not None and self.executor != "ray", "ray_address needs executor: ray"),
            (
                self.agent_image is not None and self.agent != "terminal",
                "agent_image needs agent: terminal",
            ),
        ]

    def _set(self, *names: str) -> list[str]:
        """Those of them that are set; a min_score of 0 is."""
        return [name for name in names if getattr(self, name) is not None]


def differences(stored: BatchConfig, wanted: BatchConfig) -> list[str]:
    """What a batch was begun with and what is wanted now, where the two would mix in its data."""
    was, now = _flat(stored), _flat(wanted)
    return [f"{name} was {was[name]!r} and is {now[name]!r}" for name in was if was[name] != now[name]]


def _flat(config: BatchConfig) -> dict[str, Any]:
    """What may not change, by the names of the settings: `sandbox.image`."""
    fields = config.model_dump(exclude=set(FREE))
    sandbox = fields.pop("sandbox")
    return {**fields, **{f"sandbox.{name}": value for name, value in sandbox.items()}}
