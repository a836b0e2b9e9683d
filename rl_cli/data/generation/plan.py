"""What a batch would do: how many samples, with which toolsets, at what price."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from environments.policies.base import Usage
from environments.policies.endpoints.token_estimate import request_tokens
from rl_cli.core.messages import Message
from rl_cli.core.settings import load_settings
from rl_cli.data.batch.asked import asked_items, none_left
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.entries import Damage, read_entries
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.batch.index import Index
from rl_cli.data.batch.samples import accepts, most_to_ask
from rl_cli.data.generation.toolsets import Draws, image_problem
from rl_cli.spending.prices import price_list
from tools.dispatcher import tool_schemas

ASSUMED_TURNS = 4
ASSUMED_ANSWER = 400
"""Tokens of a turn, and as many of its results, where no earlier sample tells."""
LOOKED_AT = 200
"""Items whose tokens are counted; the others are taken to be as long."""


@dataclass
class Plan:
    """What is still to be asked."""

    model: str | None
    items: int = 0
    samples: int = 0
    """At most, with a target."""
    ended: int = 0
    bad_rows: int = 0
    no_sandbox: int = 0
    """Items that an image is missing for, or that name one in vain."""
    sandbox_problem: str = ""
    """Why the first of them gets no sandbox."""
    draws: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Toolsets that are offered together -> items."""
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    dollars: float | None = None
    """None: the price is not known."""
    basis: str = ""

    def sentence(self) -> str:
        cost = "at an unknown price" if self.dollars is None else f"for about ${self.dollars:,.2f}"
        return f"{self.samples:,} samples of {self.model}, {cost} ({self.basis})."

    def fields(self) -> dict[str, Any]:
        """For a person, in order."""
        drawn = {", ".join(names) or "nothing": count for names, count in self.draws.most_common(20)}
        return {
            "model": self.model or "as for the assistant",
            "items": self.items,
            "rows that cannot be used": self.bad_rows,
            **({"items without a sandbox": self._without_sandbox()} if self.no_sandbox else {}),
            "samples that have ended": self.ended,
            "samples to ask": self.samples,
            **{f"offered: {names}": f"{count} items" for names, count in drawn.items()},
            "input tokens, about": round(self.input_tokens),
            "output tokens, about": round(self.output_tokens),
            "cost, about": "the price is not known" if self.dollars is None else f"${self.dollars:,.4f}",
            "estimated from": self.basis,
        }

    def _without_sandbox(self) -> str:
        return f"{self.no_sandbox} ({self.sandbox_problem})"

    def to_dict(self) -> dict[str, Any]:
        """For a program."""
        drawn = [{"toolsets": list(names), "items": count} for names, count in self.draws.most_common()]
        tokens = {"input": round(self.input_tokens), "output": round(self.output_tokens)}
        counted = ("model", "items", "bad_rows", "no_sandbox", "ended", "samples")
        counts = {name: getattr(self, name) for name in counted}
        return {**counts, "offered": drawn, "tokens": tokens, "cost_usd": self.dollars, "basis": self.basis}


def plan_of(config: BatchConfig, retry_failed: bool = False) -> Plan:
    """Reads the whole input, and what the batch has already.

    Args:
        config: Of the batch.
        retry_failed: Samples that have failed are asked again.

    Raises:
        BadUsage: As `items`, or a toolset cannot be offered here, or all items are held out.
    """
    plan, draws, index = Plan(config.model), Draws(config), Index(accepts(config))
    used, rows = Usage(), 0
    folder = batch_folder(config.name)
    for _, entry in read_entries(folder.ledger, Damage()):
        index.add(entry)
        if entry["row"]:
            counted, rows = entry["row"]["usage"], rows + 1
            used += Usage(counted["input_tokens"], counted["output_tokens"])

    done, failed = index.counts()
    plan.ended = done + failed
    if retry_failed:
        index.forget_failed()

    def bad_row(where: str, why: str) -> None:
        plan.bad_rows += 1

    asked: list[int] = []
    for item in asked_items(folder, config, config.max_samples, bad_row):
        plan.items += 1
        toolsets = draws.of(item)
        plan.draws[toolsets] += 1
        if problem := image_problem(item, config, toolsets):
            plan.no_sandbox += 1
            plan.sandbox_problem = plan.sandbox_problem or problem[0]
        plan.samples += most_to_ask(config, item, index.of(item.key))
        if len(asked) < LOOKED_AT:
            prefill: list[Message] = config.prefill  # type: ignore[assignment]
            asked.append(request_tokens([*prefill, *item.messages], tool_schemas(toolsets)))
    if config.eval_held_out and not plan.items:
        raise none_left(config)
    _estimate(plan, config, used, rows, sum(asked) / len(asked) if asked else 0.0)
    return plan


def _estimate(plan: Plan, config: BatchConfig, used: Usage, rows: int, prompt: float) -> None:
    if rows:
        each = Usage(used.input_tokens // rows, used.output_tokens // rows)
        plan.basis = f"{rows} samples of it"
    else:
        turns = min(ASSUMED_TURNS, config.max_turns)
        sent = sum(prompt + turn * 2 * ASSUMED_ANSWER for turn in range(turns))
        each = Usage(round(sent), turns * ASSUMED_ANSWER)
        plan.basis = f"an assumed {turns} turns of {ASSUMED_ANSWER} tokens; --max-samples 20 tells more"
    plan.input_tokens = plan.samples * each.input_tokens
    plan.output_tokens = plan.samples * each.output_tokens
    if config.model:
        price = price_list(load_settings().prices.get("models") or {}, config.base_url)
        dollars = price(config.model, each)
        plan.dollars = None if dollars is None else dollars * plan.samples
