"""What has ended, in memory: 120 bytes an item, however many its samples are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rl_cli.data.batch.entries import Entry
from rl_cli.data.rows import Row

FAILED, DONE, ACCEPTED = 1, 2, 3
"""How a sample ended, in two bits; 0: it has not."""


@dataclass(frozen=True)
class Ended:
    """The samples of one item that have ended."""

    bits: int = 0

    def has(self, sample: int) -> bool:
        return bool(self._of(sample))

    def is_done(self, sample: int) -> bool:
        return self._of(sample) >= DONE

    @property
    def accepted(self) -> int:
        """How many are done and good enough."""
        return sum(1 for state in self._all() if state == ACCEPTED)

    @property
    def done(self) -> int:
        return sum(1 for state in self._all() if state >= DONE)

    @property
    def failed(self) -> int:
        return sum(1 for state in self._all() if state == FAILED)

    def _of(self, sample: int) -> int:
        return self.bits >> 2 * sample & 3

    def _all(self) -> Iterator[int]:
        bits = self.bits
        while bits:
            yield bits & 3
            bits >>= 2


class Index:
    """The samples of all items that have ended.

    The first `done` of a sample stays; a `failed` makes room for what comes later; an `open` is none.

    Args:
        accepts: Whether a row is good enough to count towards the target.
    """

    def __init__(self, accepts: Callable[[Row], bool]) -> None:
        self._accepts = accepts
        self._bits: dict[bytes, int] = {}
        self._again: dict[bytes, int] = {}
        """Those that had failed and are asked again."""

    def add(self, entry: Entry) -> None:
        if entry["state"] == "open":
            return
        item, sample = split_key(entry["key"])
        packed = _packed(item)
        bits = self._bits.get(packed, 0)
        if Ended(bits).is_done(sample):
            return
        state = FAILED
        if entry["state"] == "done" and entry["row"] is not None:
            state = ACCEPTED if self._accepts(entry["row"]) else DONE
        self._bits[packed] = bits & ~(3 << 2 * sample) | state << 2 * sample
        if packed in self._again:
            self._again[packed] &= ~(1 << 2 * sample)

    def forget_failed(self) -> None:
        """They are to be asked again; until they end otherwise, counts() has them."""
        for packed, bits in self._bits.items():
            odd = int.from_bytes(b"\x55" * (bits.bit_length() // 8 + 1))
            if failed := bits & odd & ~(bits >> 1):
                self._again[packed], self._bits[packed] = failed, bits & ~failed

    def is_tried_again(self, key: str) -> bool:
        """Whether it is a failed one that was forgotten, and has not ended since."""
        item, sample = split_key(key)
        return bool(self._again.get(_packed(item), 0) >> 2 * sample & 1)

    def is_done(self, key: str) -> bool:
        item, sample = split_key(key)
        return self.of(item).is_done(sample)

    def of(self, item_key: str) -> Ended:
        return Ended(self._bits.get(_packed(item_key), 0))

    def counts(self) -> tuple[int, int]:
        """How many samples are done, how many failed."""
        all_ended = [Ended(bits) for bits in self._bits.values()]
        again = sum(bits.bit_count() for bits in self._again.values())
        return sum(ended.done for ended in all_ended), sum(ended.failed for ended in all_ended) + again


def split_key(key: str) -> tuple[str, int]:
    """The item's key of a row's, and the number of the sample."""
    item, _, sample = key.rpartition("-")
    return item, int(sample)


def _packed(item_key: str) -> bytes:
    digest, _, occurrence = item_key.partition("-")
    return bytes.fromhex(digest) + int(occurrence).to_bytes(4)
