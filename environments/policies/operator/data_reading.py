"""A request about training data, taken apart: the file, model, tools, figures and batch that it names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from environments.policies.operator import data_phrases
from environments.policies.operator.data_words import names_batch
from environments.policies.operator.wording import is_chinese


@dataclass
class Said:
    """A request about data, as far as it was read; what was read is taken out of `rest`."""

    rest: str
    input: str | None = None
    model: str | None = None
    tools: str | None = None
    """Names with commas; "" for none; None: not said."""
    each: int | None = None
    max_tokens: int | None = None
    count: int | None = None
    name: str | None = None
    first: int | None = None
    """The number of a sample."""
    dedupe: bool = False
    pii: bool = False
    """Personal data is to be masked."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Others of a batch, by name."""


def read(text: str) -> Said:
    """A normalised request, taken apart."""
    said = Said(text)
    chinese = is_chinese(text)
    said.input = _take(said, data_phrases.FILE) or _take(said, data_phrases.DATASET)
    said.model = _take(said, data_phrases.MODEL)
    for name, typed, pattern in data_phrases.SETTINGS:
        if (value := _take(said, pattern)) is not None:
            said.settings[name] = typed(value)
    if _take(said, data_phrases.NO_TOOLS) is not None:
        said.tools = ""
    elif (named := _take(said, data_phrases.TOOLS)) is not None:
        said.tools = ",".join(re.findall(r"[a-z_]+", re.sub(r"\band\b", " ", named.lower())))
    elif (kind := _take(said, data_phrases.KIND_ZH)) is not None:
        said.tools = data_phrases.TOOLS_ZH[kind]
    said.dedupe = _take(said, data_phrases.NO_DUPLICATES) is not None
    said.pii = _take(said, data_phrases.NO_PERSONAL_DATA) is not None
    said.each = _number(_take(said, data_phrases.EACH, "样本" if chinese else "samples"))
    said.max_tokens = _figure(said, data_phrases.TOKENS, "")
    said.name = _name(said)
    said.first = _number(_take(said, data_phrases.FIRST, "样本" if chinese else "sample"))
    said.count = _figure(said, data_phrases.COUNT, "样本" if chinese else "")
    return said


def _take(said: Said, pattern: re.Pattern[str], instead: str = "") -> str | None:
    """The last group that matched, or all of it; taken out."""
    if (found := pattern.search(said.rest)) is None:
        return None
    _put(said, found.span(), instead)
    return next((group for group in reversed(found.groups()) if group), found[0])


def _figure(said: Said, pattern: re.Pattern[str], instead: str) -> int | None:
    """The figure of a pattern whose groups are digits and a multiplier, by turns; taken out."""
    if (found := pattern.search(said.rest)) is None:
        return None
    _put(said, found.span(), instead)
    groups = found.groups()
    digits, times = next((groups[n], groups[n + 1]) for n in range(0, len(groups), 2) if groups[n])
    return int(digits.replace(",", "")) * data_phrases.TIMES.get((times or "").lower(), 1)


def _put(said: Said, span: tuple[int, int], instead: str) -> None:
    rest = f"{said.rest[: span[0]]} {instead} {said.rest[span[1] :]}"
    said.rest = " ".join(rest.split())


def _number(digits: str | None) -> int | None:
    return int(digits.replace(",", "")) if digits else None


def _name(said: Said) -> str | None:
    for found in data_phrases.NAMED.finditer(said.rest):
        group = next(n for n in range(2, 9, 2) if found[n])
        name = found[group].rstrip(".-")
        quoted = found[group - 1] != ""
        if name and (quoted or (names_batch(name) and not data_phrases.NO_NAMES.match(name))):
            first = ("batch", "批次", "export", "导出")
            kept = next((word for word in first if found[0].lower().startswith(word)), "")
            _put(said, (found.start(), found.start(group) + len(name) + quoted), kept)
            return name
    found_of = None if said.input else data_phrases.OF_NAME.search(said.rest)
    if found_of and names_batch(found_of[1]) and not data_phrases.NO_NAMES.match(found_of[1]):
        _put(said, found_of.span(1), "it")
        return found_of[1]
    return None
