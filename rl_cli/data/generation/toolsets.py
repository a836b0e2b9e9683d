"""Which toolsets an item is offered: its own, the batch's, or drawn by seed and key."""

from __future__ import annotations

from pathlib import Path

from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import load_settings
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from rl_cli.data.generation import terminal_agent
from rl_cli.data.generation.sandboxes import WITH_IMAGE, no_image
from tools.distributions import load_catalogue
from tools.sandboxes import kinds
from tools.toolsets import TOOLSETS, load_toolsets, why_unavailable

IN_SANDBOX = "tools.everyday.task_sandbox.why_none"
"""The problem of toolsets that need nothing but a sandbox: of the batch's kind, not of the default one."""


def image_problem(item: Item, config: BatchConfig, offered: tuple[str, ...]) -> tuple[str, str] | None:
    """Why an item gets no sandbox, and what helps; None: it gets one, or needs none.

    Args:
        offered: Its toolsets.
    """
    kind = config.sandbox.kind
    if kind not in WITH_IMAGE:
        return no_image(kind, item.image) if item.image else None
    if item.image or config.agent_image or config.sandbox.image:
        return None
    if config.agent == "terminal" or any(TOOLSETS[name].problem == IN_SANDBOX for name in offered):
        hint = "give --image NAME (sandbox.image), or each row an image of its own"
        return f"{kind} starts from an image, and none is named", hint
    return None


def check_image(item: Item, config: BatchConfig) -> None:
    """Raises BadUsage where an item's commands need an image that nobody names, or it names one in vain."""
    if problem := image_problem(item, config, Draws(config).of(item)):
        raise BadUsage(*problem)


class Draws:
    """The toolsets of every item of a batch.

    Raises:
        BadUsage: A toolset or distribution is unknown, or cannot be used on this machine.
    """

    def __init__(self, config: BatchConfig) -> None:
        own = load_settings().toolsets_file
        self._catalogue = load_catalogue(Path(own).expanduser().absolute() if own else None)
        self._config = config
        self._why: dict[str, str | None] = {}
        self._fixed: tuple[str, ...] | None = None
        if config.agent == "terminal":
            self._fixed = (terminal_agent.TOOLSET,)
        elif config.toolsets is not None:
            named = {part for name in config.toolsets for part in self._catalogue.members(name)}
            for name in sorted(named):
                if (why := self._unusable(name)) is not None:
                    raise BadUsage(f"toolset '{name}' cannot be used here: {why}")
            load_toolsets(sorted(named))
            self._fixed = tuple(sorted(named))
        else:
            self._catalogue.draw(str(config.distribution), config.seed, "", self._unusable)

    def of(self, item: Item) -> tuple[str, ...]:
        """Sorted names; the same for all samples of an item."""
        if self._config.agent != "terminal" and item.toolsets is not None:
            return item.toolsets
        if self._fixed is not None:
            return self._fixed
        name = str(self._config.distribution)
        return self._catalogue.draw(name, self._config.seed, item.key, self._unusable)

    def percents(self) -> dict[str, float | None]:
        """Of a distribution: toolset -> in how many of a hundred items; None: it cannot be used here."""
        if self._fixed is not None:
            return dict.fromkeys(self._fixed, 100.0)
        name = str(self._config.distribution)
        reasons = self._catalogue.usable(name, self._unusable)
        found = self._catalogue.find(name).percents
        return {each: found[each] if reasons[each] is None else None for each in found}

    def _unusable(self, name: str) -> str | None:
        """Looked at once: the answer of one machine does not change while a batch runs."""
        if name not in self._why:
            in_sandbox = name in TOOLSETS and TOOLSETS[name].problem == IN_SANDBOX
            why = kinds.usable(self._config.sandbox.kind) if in_sandbox else why_unavailable(name)
            self._why[name] = why
        return self._why[name]
