"""The Hugging Face hub, asked for data sets and tokenizers: quiet while it is tried, plain where it fails."""

from __future__ import annotations

import logging

from rl_cli.core.cuts import one_line

LONGEST = 200


def quiet_hub() -> None:
    """Keeps each new attempt of the hub's libraries off the terminal: one error tells of them all."""
    for name in ("huggingface_hub", "datasets"):
        logging.getLogger(name).setLevel(logging.ERROR)


def hub_trouble(error: Exception) -> tuple[str, str | None]:
    """Why the hub gave nothing, in one line without the names of exceptions, and what helps."""
    from huggingface_hub import constants

    if isinstance(error, ConnectionError | TimeoutError):
        offline = "HF_HUB_OFFLINE is set, and not all of it is on this computer"
        why = offline if constants.HF_HUB_OFFLINE else "the Hugging Face hub cannot be reached"
        return why, "save it to a folder where there is a network (save_to_disk), and name that"
    return one_line(str(error) or type(error).__name__, LONGEST), None
