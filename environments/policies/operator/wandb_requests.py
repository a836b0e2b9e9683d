"""Requests about runs in W&B, as intents: whatever names one, or says W&B and what to do there."""

from __future__ import annotations

import re

from environments.policies.operator import chinese, chinese_phrases, english, english_phrases
from environments.policies.operator.acts import Act, Reading
from environments.policies.operator.commands import UPLOADS
from environments.policies.operator.intents import (
    Blocked,
    Hold,
    Intent,
    Results,
    Status,
    Unknown,
    WandbCompare,
    WandbList,
    WandbStop,
    Watch,
)
from environments.policies.operator.settings import Problem
from environments.policies.operator.telling import take_telling
from environments.policies.operator.wording import clauses, is_chinese

_PART = r"[A-Za-z0-9][\w.-]{0,127}"
NAME = re.compile(
    rf"(?<![\w./:-])(?:wandb:)?({_PART}/{_PART}(?:/{_PART})?)(?![\w/])", re.IGNORECASE | re.ASCII
)
SERVICE = re.compile(
    r"(?<![\w/.-])(?:w ?& ?b|wandb(?!:)|weights (?:&|and) biases)(?![\w/.-])(?:(?:上|里|中)?的?\s*运行)?",
    re.IGNORECASE,
)
PAGE = re.compile(rf"https?://[^\s/]+/(?:wandb/)?({_PART})/({_PART})/runs/({_PART})[^\s,;]*", re.ASCII)
PREFIX = re.compile(r"(?<![\w./:-])wandb:", re.IGNORECASE)
TRAINS = re.compile(r"\b(?:train|fine-?tune)\b|训练", re.IGNORECASE)
LISTS = (Act.LIST, Act.RUNS, Act.ENVIRONMENTS, Act.DESCRIBE, None)
LOOKS: dict[Act | None, type[Intent]] = {
    Act.WATCH: Watch,
    Act.RESULTS: Results,
    Act.STATUS: Status,
    Act.DESCRIBE: Status,
    Act.RUNS: Status,
    Act.LIST: Status,
}


def wandb_runs(text: str) -> list[str]:
    """Every entity/project/run that the text names, by itself or by the address of its page."""
    plain = PAGE.sub(r"wandb:\1/\2/\3", text)
    return [match[1] for match in NAME.finditer(plain) if match[1].count("/") == 2]


def wandb_project(text: str) -> str | None:
    """The first entity/project that the text names."""
    return next((match[1] for match in NAME.finditer(text) if match[1].count("/") == 1), None)


def wandb_intents(text: str) -> list[Intent]:
    """What `text` (normalised) asks for in W&B; [] where it is about something else, such as training."""
    text = PAGE.sub(r"wandb:\1/\2/\3", text)
    if not (SERVICE.search(text) or PREFIX.search(text)):
        return []
    if UPLOADS.search(text) and not TRAINS.search(text):
        return [Unknown(text)]
    word = "它" if is_chinese(text) else "the run"
    plain, told = take_telling(SERVICE.sub(" ", NAME.sub(word, text)))
    later = english_phrases.LATER.search(plain) or chinese_phrases.LATER.search(plain)
    found: list[Intent] = []
    refuses = False
    for clause in clauses(plain):
        reader = chinese if is_chinese(clause.text) else english
        reading = reader.read(clause.text, clause.asks, False)
        if reading.act in (Act.TRAIN, Act.MAYBE_TRAIN, Act.FORBIDDEN, Act.RESUME) and not found:
            return []
        refuses = refuses or reading.negated
        intent = _intent(reading, text, later is not None)
        if intent and not any(type(known) is type(intent) for known in found):
            found.append(intent)
    if not found and wandb_runs(text) and not refuses:
        found = [Watch(text) if told is not None else Status(text)]
    # "watch it and tell me how it is" is one thing.
    return [intent for intent in found if not isinstance(intent, Status)] or found


def _intent(reading: Reading, text: str, later: bool) -> Intent | None:
    named = wandb_runs(text)
    if reading.act is Act.STOP and named:
        if reading.negated:
            return Hold(what="stop")
        if later:
            return Hold(what="later")
        if reading.question:
            return Status(text)
        return (
            Blocked(text, (Problem("condition", reading.text),)) if reading.conditional else WandbStop(text)
        )
    if reading.negated:
        return None
    if reading.act is Act.COMPARE:
        return WandbCompare(text)
    if named:
        kind = LOOKS.get(reading.act)
        return kind(text) if kind else None
    if reading.act in LISTS and re.search(r"\b(?:projects|runs)\b|项目|运行", text, re.IGNORECASE):
        return WandbList(text)
    return None
