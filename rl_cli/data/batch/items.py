"""Items of a batch: what is asked, under keys that stay the same when the input is edited.

A key is the hash of what is asked (messages, image, cwd, toolsets) and the number of the occurrence among
equal ones: rows that are repeated on purpose are so many items, and rows that are inserted, removed or moved
leave the keys of the others alone. `metadata` and `n` are no part of what is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage
from rl_cli.core.json_text import plain, repair_surrogates
from rl_cli.core.messages import Message
from rl_cli.core.settings import load_settings
from rl_cli.data.batch.inputs import rows
from rl_cli.data.batch.inputs_text import Unreadable
from rl_cli.data.batch.item_fields import BadRow, messages_of, metadata_of, samples_of, text_of, toolsets_of
from tools.distributions import load_catalogue

HASH_BYTES = 16
Members = Callable[[str], tuple[str, ...]]
"""The toolsets that a name stands for."""


@dataclass(frozen=True)
class Item:
    """One thing to ask, once or several times."""

    key: str
    """`HASH-OCCURRENCE`."""
    where: str
    """Its place in the input: "line 7", "row 7"."""
    messages: list[Message]
    """Canonical; the last one is a person's or a tool's."""
    image: str | None
    """What its sandbox starts from."""
    cwd: str | None
    """The folder that the task works in."""
    toolsets: tuple[str, ...] | None
    """Its own, sorted; None: the batch says."""
    samples: int | None
    """How many of it are wanted; None: the batch says."""
    metadata: dict[str, Any]


def items(source: str, on_bad: Callable[[str, str], None]) -> Iterator[Item]:
    """The items of an input, in its order. What is kept are about 110 bytes for each that differs.

    Args:
        source: As `inputs.rows` takes it.
        on_bad: Called with place and reason of each row that cannot be used, which is passed over.

    Raises:
        BadUsage: No row can be used; and as `inputs.rows`.
        WorkFailed: As `inputs.rows`.
    """
    members = _members()
    seen: dict[bytes, int] = {}
    problem: str | None = None
    for where, row in rows(source):
        try:
            item = _item(where, row, members, seen)
        except BadRow as reason:
            problem = problem or f"{where}: {reason}"
            on_bad(where, str(reason))
        else:
            yield item
    if not seen:
        raise BadUsage(f"no row of {source} can be used: {problem or 'there is none'}", "see docs/data.md")


def _item(where: str, row: Any, members: Members, seen: dict[bytes, int]) -> Item:
    if isinstance(row, Unreadable):
        raise BadRow(row.why)
    if not isinstance(row, dict):
        raise BadRow("it is no object")
    messages, image, cwd = messages_of(row), text_of(row, "image"), text_of(row, "cwd")
    toolsets, samples, metadata = toolsets_of(row, members), samples_of(row), metadata_of(row)
    digest = _digest({"messages": messages, "image": image, "cwd": cwd, "toolsets": toolsets})
    occurrence = seen.get(digest, 0)
    seen[digest] = occurrence + 1
    return Item(f"{digest.hex()}-{occurrence}", where, messages, image, cwd, toolsets, samples, metadata)


def _digest(asked: dict[str, Any]) -> bytes:
    """Of the JSON without blanks, names sorted, without the fields that are not set."""
    given = {name: value for name, value in asked.items() if value is not None}
    text = json.dumps(plain(given), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return blake2b(repair_surrogates(text).encode(), digest_size=HASH_BYTES).digest()


def _members() -> Members:
    """By the settings that hold now."""
    own = load_settings().toolsets_file
    return load_catalogue(Path(own).expanduser().absolute() if own else None).members
