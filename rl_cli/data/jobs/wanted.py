"""The settings of a batch from what is asked for in a conversation and what the batch was begun with."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import environments_folder, load_settings
from rl_cli.data.batch.config import NAME, BatchConfig
from rl_cli.data.batch.config_file import INSTEAD, checked, load_config
from rl_cli.data.batch.folder import BatchFolder, batch_folder, find_batch
from rl_cli.data.batch.items import items
from rl_cli.data.batch_runner import check_start

NOT_BY_CHAT = {
    "base_url": "configure the endpoint: rl-cli config set endpoints.",
    "ray_address": "begin the batch at a terminal: rl-cli data generate --ray-address",
}
"""Where keys and work are sent is for the person to say; what says it instead."""
MOST_OF_NAME = 90
"""Characters that are kept where a number is added."""
UNBOUNDED = frozenset({"local", "ssh"})
"""Kinds of sandbox that isolate nothing."""


def wanted_batch(given: Mapping[str, Any], more: Mapping[str, Any], count: int | None) -> BatchConfig:
    """The settings of the batch that is asked for, with its model.

    Args:
        given: Settings by name; None counts as not given. Without `input`, the batch of that `name` is meant;
            without `name`, it is called as the input is, with a number where that is a batch begun otherwise.
        more: Others by dotted name.
        count: How many samples it should have in all; None: as the settings say.

    Raises:
        BadUsage: A setting is unknown or wrong, there is no such batch, it was begun otherwise, no model is
            configured that could make data, or there is none of that name, or no key for it; or its sandbox
            cannot be had, with the image that is named or without one.
    """
    for field in NOT_BY_CHAT:
        if field in more:
            raise BadUsage(f"{field} cannot be set here", NOT_BY_CHAT[field])
    flags = {field: value for field, value in {**more, **given}.items() if value is not None}
    config = _in_folder(batch_folder(flags["name"]), flags, count) if _is_named(flags) else None
    config = config or _in_free_folder(flags, count)
    check_names(config)
    check_start(config)
    return config


def _is_named(flags: Mapping[str, Any]) -> bool:
    """Whether the batch is; one that goes on has to exist."""
    if "input" not in flags:
        if "name" not in flags:
            raise BadUsage(
                "what is to be asked is not said", "give input, or the name of a batch that goes on"
            )
        find_batch(flags["name"])
    return bool(flags.get("name"))


def _in_free_folder(flags: Mapping[str, Any], count: int | None) -> BatchConfig:
    """In the batch that is called as the input is, else in the first of `NAME-2` ... that is no other."""
    name = _name_of(flags["input"])
    for number in itertools.count(1):
        folder = batch_folder(name if number == 1 else f"{name[:MOST_OF_NAME]}-{number}")
        if not folder.exists():
            break
        with suppress(BadUsage):  # begun otherwise; what is wrong with the flags is told of a new one
            return _in_folder(folder, flags, count)
    return _in_folder(folder, flags, count)


def _in_folder(folder: BatchFolder, flags: Mapping[str, Any], count: int | None) -> BatchConfig:
    """Raises BadUsage where the batch was begun otherwise."""
    begun = folder.exists()
    given = _with_stored(folder, flags) if begun else flags
    config = load_config(None, {**given, "name": folder.name})
    if count is not None:
        config = _sized(config, count, begun)
    if config.model is None:
        config = config.model_copy(update={"model": _model()})
    if begun:
        folder.check_same(config)
    return config


def _name_of(source: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(source).stem).strip("-._")[:100]
    return name if NAME.fullmatch(name) else f"batch-{name}"[:100]


def _with_stored(folder: BatchFolder, flags: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, over what the batch was begun with, as far as it was last to go."""
    stored = folder.config().model_dump()
    if "input" not in flags:
        stored["max_samples"] = folder.state().get("max_samples", stored["max_samples"])
    for field in flags:
        stored.pop(INSTEAD.get(field, ""), None)
    return {**stored, **flags}


def _sized(config: BatchConfig, count: int, begun: bool) -> BatchConfig:
    """As many items as give so many samples; each of them asked several times where there are too few."""
    each = config.most_samples
    if each > 1 or begun:
        return config.model_copy(update={"max_samples": -(-count // each)})
    found = sum(1 for _ in islice(items(config.input, lambda where, why: None), count))
    each = -(-count // found)
    return checked({**config.model_dump(), "samples": each, "max_samples": -(-count // each)})


def check_names(config: BatchConfig) -> None:
    """Raises BadUsage where its model or environment does not exist, or a key is missing."""
    from environments.catalogue import find_environment
    from rl_cli.agent.models import OPERATOR, resolve_policy

    settings = load_settings()
    assert config.model
    if config.model == OPERATOR:
        raise BadUsage(f"{OPERATOR} makes no training data", "name a model as provider/name")
    resolve_policy(config.model, config.base_url, settings)
    if config.score:
        find_environment(config.score, environments_folder())


def _model() -> str:
    """The configured one, else that of the first provider with a key, whoever leads the conversation."""
    from rl_cli.agent.models import OPERATOR, choose_model

    configured = load_settings().model
    chosen = choose_model(None if configured == OPERATOR else configured).name
    if chosen == OPERATOR:
        hint = "name one as provider/name, or set the key of a provider"
        raise BadUsage("no language model is configured that could make training data", hint)
    return chosen
