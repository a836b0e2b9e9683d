"""Requests about training data, as intents: samples to be made, and batches that are made or were.

As everywhere, in doubt nothing is started: a negation, a condition, a question or a figure that is not
understood turns an order into an answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from environments.policies.operator import chinese_phrases, data_phrases, english_phrases
from environments.policies.operator.data_reading import Said, read
from environments.policies.operator.data_words import unread
from environments.policies.operator.intents import (
    Batch,
    BatchStats,
    BatchStatus,
    Blocked,
    CompressBatch,
    ExportBatch,
    Hold,
    Intent,
    ListBatches,
    MakeSamples,
    MayMakeSamples,
    MergeBatch,
    ResumeBatch,
    ShowSamples,
    StopBatch,
    Unknown,
    WatchBatch,
)
from environments.policies.operator.numerals import to_digits
from environments.policies.operator.settings import Problem
from environments.policies.operator.telling import take_telling
from tools.distributions import load_catalogue

ORDERS = frozenset({"make", "go_on", "stop", "compress", "export", "merge"})
"""What is not done for a question."""


def data_intents(text: str) -> list[Intent]:
    """What `text` (normalised) asks for about training data; [] where it is about something else."""
    plain = data_phrases.SIZES.sub(" ", text)
    bare = data_phrases.FILE.sub(" ", plain)
    file = bare != plain
    if not data_phrases.SUBJECT.search(bare) and not (file and data_phrases.MAKE.search(bare)):
        return []
    asked, told = take_telling(plain)
    said = read(data_phrases.THEN_ZH.sub(r"\1", to_digits(asked)))
    acts = _acts(said)
    if data_phrases.TRAINS.search(said.rest):
        return [Unknown(text)] if "make" in acts else []
    if data_phrases.PRICE.search(said.rest):
        return [MayMakeSamples(text)]
    if not acts:
        name = said.name or read(told or "").name
        return [WatchBatch(text, name)] if told is not None else [Unknown(text)] if file else []
    if held := _held(said, acts):
        return [held]
    if acts == ["list"]:
        return [ListBatches(text)]
    orders = [_intent(acts[0], text, said)]
    said = replace(said, count=None) if acts[0] == "make" else said  # so many are made, not shown
    orders += [_intent(act, text, said) for act in acts[1:]]
    if isinstance(first := orders[0], MakeSamples):
        return [replace(first, then=tuple(orders[1:]))]
    if told is not None and not any(isinstance(each, WatchBatch) for each in orders):
        orders.append(WatchBatch(text, name=said.name))
    return list(orders)


def _held(said: Said, acts: list[str]) -> Intent | None:
    """What is answered in place of orders that are none, not for now, or not understood in full."""
    rest, orders = said.rest, [act for act in acts if act in ORDERS]
    if not orders:
        return None
    phrases = (english_phrases, chinese_phrases)
    if any(each.LATER.search(rest) for each in phrases):
        return Hold(what="later")
    if any(each.NEGATION.search(each.HARMLESS.sub(" ", rest)) for each in phrases):
        return Hold(what="stop") if acts == ["stop"] else _blocked("restriction", rest, rest)
    if any(each.CONDITION.search(rest) for each in phrases):
        return _blocked("condition", rest, rest)
    polite = any(each.POLITE.search(rest) for each in phrases) or english_phrases.CAN_YOU.search(rest)
    if data_phrases.ASKS.search(rest) and not polite:
        return MayMakeSamples(rest) if orders[0] == "make" else BatchStatus(rest, said.name)
    unclear = _unclear(said, acts)
    return _blocked("unread", unclear, rest) if unclear else None


def _blocked(kind: str, what: str, rest: str) -> Blocked:
    return Blocked(rest, (Problem(kind, what),), about_data=True)


def _unclear(said: Said, acts: list[str]) -> str | None:
    """A part of an order that says something which would not be done."""
    if several := data_phrases.SEVERAL.search(said.rest):
        return several[0]
    makes, compresses = "make" in acts, "compress" in acts
    unused: dict[Any, bool] = {
        said.input: makes,
        said.model: makes or acts == ["compress"],
        said.tools: makes,
        said.max_tokens: compresses,
        said.count: makes or "show" in acts,
        said.each: makes,
        **{f"{name} {value}": makes for name, value in said.settings.items()},
        said.first: "show" in acts,
    }
    if makes and (other := _another_order(said.rest)):
        return other
    left = next((value for value, used in unused.items() if value is not None and not used), None)
    return unread(_unsaid(said.rest, acts)) if left is None else str(left)


def _unsaid(rest: str, acts: list[str]) -> str:
    """What is left without the words that belong to its acts."""
    patterns = [pattern for act, pattern in data_phrases.ACTS if act in acts and act in ("show", "stats")]
    patterns += [
        data_phrases.WHICH,
        *(data_phrases.SAID_OF[act] for act in acts if act in data_phrases.SAID_OF),
    ]
    for pattern in patterns:
        rest = pattern.sub(" ", rest)
    return rest


def _another_order(rest: str) -> str | None:
    """What is said and not done beside making samples: stopping, or going on with something after that."""
    acts, makes = dict(data_phrases.ACTS), (data_phrases.MAKE, data_phrases.WANT)
    begins = next(found.start() for pattern in makes if (found := pattern.search(rest)))
    found = acts["stop"].search(rest) or acts["go_on"].search(rest, begins)
    return found[0] if found else None


def _acts(said: Said) -> list[str]:
    """What is asked for, in order; "status" only where nothing is ordered."""
    places = [
        (found.start(), act) for act, pattern in data_phrases.ACTS if (found := pattern.search(said.rest))
    ]
    acts = [act for _, act in sorted(places)]
    if said.input and "make" not in acts and data_phrases.WANT.search(said.rest):
        acts = ["make", *(act for act in acts if act != "show")]
    about = next((act for act in acts if act in ("stop", "go_on")), None)
    if about and "make" in acts and not said.input:
        acts = [about]  # "go on with making the samples"
    if "make" in acts:  # it is watched to its end, and continues what there is
        rest = [act for act in acts if act in ("compress", "export", "merge", "show", "stats")]
        return ["make", *rest]
    if any(act in ORDERS for act in acts):
        acts = [act for act in acts if act not in ("status", "list")]
    if "list" in acts:
        return ["list"]
    if "show" in acts or "stats" in acts:
        acts = [act for act in acts if act not in ("status", "watch")]
    return acts


def _intent(act: str, text: str, said: Said) -> Batch:
    name = said.name
    match act:
        case "make":
            settings = tuple(said.settings.items())
            return MakeSamples(
                text, name, said.input, said.model, *_tools(said), said.count, said.each, settings
            )
        case "go_on":
            return ResumeBatch(text, name)
        case "stop":
            return StopBatch(text, name, data_phrases.NOW.search(said.rest) is not None)
        case "compress":
            return CompressBatch(text, name, said.max_tokens, None if said.input else said.model)
        case "export":
            found = data_phrases.FORMAT.search(said.rest)
            word = found[1].lower() if found else None
            which = "compressed" if data_phrases.COMPRESSED.search(said.rest) else "merged"
            format_ = data_phrases.FORMATS.get(word, word) if word else None
            return ExportBatch(text, name, format_, which, said.dedupe, said.pii)
        case "merge":
            return MergeBatch(text, name)
        case "show":
            which = "discarded" if data_phrases.DISCARDED.search(said.rest) else "merged"
            which = "compressed" if data_phrases.COMPRESSED.search(said.rest) else which
            count = said.count or (1 if said.first else 3)
            return ShowSamples(text, name, min(count, 10), said.first or 1, which)
        case "stats":
            return BatchStats(text, name)
        case "watch":
            return WatchBatch(text, name)
    return BatchStatus(text, name)


def _tools(said: Said) -> tuple[tuple[str, ...] | None, str | None]:
    """(toolsets, distribution): a single word can be the name of a distribution."""
    if said.tools is None:
        return None, None
    names = tuple(name for name in said.tools.split(",") if name)
    if len(names) == 1 and names[0] in load_catalogue().distributions:
        return None, names[0]
    return names, None
