"""The parsers under atheris: bytes choose a family, its marks, words, pieces. Takes libFuzzer's options."""

from __future__ import annotations

import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["environments.parsers"]):
    from environments.parsers.families import FAMILIES

from tests.environments.parsers.calls import NOISE, TOOLS, WORD, marks
from tests.environments.parsers.replay import stream
from tests.environments.parsers.test_any_text import lost

FAMILY_MARKS = [(family, [*marks(family), *NOISE, WORD]) for family in FAMILIES.values()]


def one_text(data: bytes) -> None:
    chosen = atheris.FuzzedDataProvider(data)
    family, parts = FAMILY_MARKS[chosen.ConsumeIntInRange(0, len(FAMILY_MARKS) - 1)]
    size = chosen.ConsumeIntInRange(1, 9)
    pieces = []
    while chosen.remaining_bytes():
        if chosen.ConsumeIntInRange(0, 15):
            pieces.append(parts[chosen.ConsumeIntInRange(0, len(parts) - 1)] or f"w{len(pieces)}w")
        else:
            pieces.append(chosen.ConsumeUnicode(4))
    text = "".join(pieces)
    parsed = family.parse(text, TOOLS)
    assert stream(family, TOOLS, (text[at : at + size] for at in range(0, len(text), size))) == parsed, text
    assert not lost(text, parsed), (family.name, text, parsed)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup([*sys.argv, f"-artifact_prefix={folder}/"], one_text)
        atheris.Fuzz()
