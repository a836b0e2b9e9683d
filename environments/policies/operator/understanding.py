"""A request as a list of intents, in the order in which they are carried out.

In doubt nothing is started: a question, a negation, a condition or an exclusion that is not understood turns
an order to train into an answer. Not covered: references across clauses ("the first one"), two trainings in
one request.
"""

from __future__ import annotations

import re
from dataclasses import replace

from environments.policies.operator import chinese, chinese_phrases, english, english_phrases, names
from environments.policies.operator.acts import Act, Reading
from environments.policies.operator.data_requests import data_intents
from environments.policies.operator.intents import (
    Bare,
    Best,
    Blocked,
    Compare,
    Costs,
    Describe,
    EditConfig,
    Help,
    Hold,
    HowLong,
    HowToTrain,
    Intent,
    ListEnvironments,
    ListRuns,
    ListTools,
    MayTrain,
    Results,
    Resume,
    Select,
    ShowConfig,
    Status,
    Stop,
    TestInference,
    Train,
    Unknown,
    Watch,
)
from environments.policies.operator.settings import Problem, Settings, read_settings, unread
from environments.policies.operator.telling import take_telling
from environments.policies.operator.wandb_requests import wandb_intents
from environments.policies.operator.wording import LIMIT, clauses, is_chinese, normalise

ANYWAY = re.compile(
    r"\b(?:anyway|anyhow|regardless|nevertheless|even so|force|by force)\b|无论如何|强制|照样|硬要"
    r"|还是要?训练|仍然?要?训练",
    re.IGNORECASE,
)
GOES_WRONG = re.compile(
    r"wrong|bad|worse|diverg|collaps|fall|drop|plateau|stall|no longer|improv|fail|nan\b|变差|下降|不再"
    r"|异常|出错|恶化|发散|提升",
    re.IGNORECASE,
)
EVERY = re.compile(r"\b(?:all|every|everything|both)\b|所有|全部|都停", re.IGNORECASE)
ALL_ENVIRONMENTS = re.compile(
    r"\b(?:all|every|both|each)\b.{0,20}\b(?:environments?|envs?|them)\b|(?:所有|全部|每个).{0,4}环境",
    re.IGNORECASE,
)
COUNT = re.compile(
    r"\b(?:last|latest|newest|recent)?\s*(\d|two|three|four|five)\s+(?:\w+ ){0,2}?runs?\b|(\d|两|二|三|四"
    r"|五)\s*(?:个|次)",
    re.IGNORECASE,
)
COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5}
ALL_RUNS = re.compile(
    r"\b(?:best|all|every|top)\b|\bmy (?:finished |past )?(?:runs|trainings)\b"
    r"|最好|最佳|最高|最优|所有|全部|各个?运行",
    re.IGNORECASE,
)
RUN_ID = re.compile(r"(?<!\d)\d{8}-\d{2,6}[\w-]*", re.ASCII)
STARTS = (Act.TRAIN, Act.MAYBE_TRAIN)
GO_ON = (Status, Stop, Hold, Watch)
"""After what a run may go on, so that there is an end to tell of."""
GRAVE = (Act.FORBIDDEN, Act.RESUME)
"""What is not done beside a training."""


def understand(request: str) -> list[Intent]:
    """Never empty; never raises."""
    if len(request) > LIMIT:
        return [Unknown(too_long=True)]
    text = normalise(request)
    if len(text) > LIMIT:  # one letter can become eighteen (NFKC)
        return [Unknown(too_long=True)]
    if not re.search(r"\w", text):
        return [Help()]
    if remote := wandb_intents(text):
        return remote
    if data := data_intents(text):
        return data
    asked, told = take_telling(text)
    settings, rest = read_settings(asked)
    readings = []
    for order, clause in enumerate(clauses(rest)):
        reader = chinese if is_chinese(clause.text) else english
        readings.append(replace(reader.read(clause.text, clause.asks, bool(settings.changes)), order=order))
    later = english_phrases.LATER.search(rest) is not None or chinese_phrases.LATER.search(rest) is not None
    starts = [reading for reading in readings if reading.act in STARTS and not reading.negated]
    others = [reading for reading in readings if reading not in starts]
    if starts and not later:
        return _training(starts, others, settings, rest)

    intents: list[Intent] = [Hold(what="later")] if starts else []
    for reading in others:
        intent = _resume(reading, settings, rest, later) or _intent(reading, settings, later)
        if intent and intent not in intents:
            intents.append(intent)
    if told is not None and not later and all(isinstance(intent, GO_ON) for intent in intents):
        intents.append(Watch(told))
    if any(isinstance(intent, Blocked) for intent in intents):  # it says that nothing was done
        return [intent for intent in intents if isinstance(intent, Blocked)]
    if any(isinstance(intent, Resume) for intent in intents):  # which watches too
        intents = [intent for intent in intents if not isinstance(intent, Watch)]
    if sum(isinstance(intent, Watch) for intent in intents) > 1:  # "watch it and tell me when it is done"
        intents.remove(Watch(told or ""))
    if done := [intent for intent in intents if intent != Hold(what="train")]:
        return done
    if intents:
        return intents[:1]
    if later:
        return [Hold(what="later")]
    if settings.changes and len(names.content_words(rest)) <= 1:
        return [EditConfig(text, settings)]
    return [Bare(text)] if len(text.split()) <= 5 and len(text) <= 60 else [Unknown(text)]


def _training(starts: list[Reading], others: list[Reading], settings: Settings, rest: str) -> list[Intent]:
    """An order to train, with whatever else the request says."""
    before = readings_before(starts[0], others)
    subject = ", ".join(
        r.text for r in [*starts, *others] if not r.negated and r.act in (*STARTS, Act.SELECT, Act.EDIT, None)
    )
    if any(reading.question for reading in starts):
        return [MayTrain(subject) if all(r.act is Act.TRAIN for r in starts) else HowToTrain(subject)]
    problems = [*settings.problems, *unread(rest)]
    problems += [Problem("several", r.text) for r in starts if ALL_ENVIRONMENTS.search(r.text)]
    problems += [Problem("forbidden", r.text) for r in others if r.act in GRAVE and not r.negated]
    for reading in [*starts, *others]:
        if reading.act is Act.STOP and not reading.negated and reading not in before:
            named = re.sub(
                r"\b(?:stop|it|the|run|training|early|please)\b|停止|停|训练|就|再", " ", reading.text
            ).strip()
            if named and not GOES_WRONG.search(reading.text):
                problems.append(Problem("condition", reading.text))
        elif reading.restricted or (reading.negated and reading.act is None):
            problems.append(Problem("restriction", reading.text))
        elif reading.act in STARTS and not reading.negated and reading.conditional:
            problems.append(Problem("condition", reading.text))
    if problems:
        return [Blocked(rest, tuple(problems))]
    sure = any(reading.act is Act.TRAIN for reading in starts)
    intents: list[Intent] = [
        intent for reading in before if (intent := _intent(reading, settings)) and isinstance(intent, Stop)
    ]
    intents.append(Train(subject, settings, sure=sure, anyway=ANYWAY.search(rest) is not None))
    return intents + [
        Compare(r.text) for r in others if r.act is Act.COMPARE and not r.negated and r not in before
    ]


def readings_before(first: Reading, others: list[Reading]) -> list[Reading]:
    """Unconditional orders to stop that come before the order to train."""
    return [
        r
        for r in others
        if r.order < first.order and r.act is Act.STOP and not r.negated and not r.conditional
    ]


def _resume(reading: Reading, settings: Settings, rest: str, later: bool) -> Intent | None:
    """What an order to go on with a run that has ended asks for; None for any other clause."""
    if reading.act is not Act.RESUME or reading.negated:
        return None
    if later:
        return Hold(what="later")
    if reading.question:
        return Status(reading.text)
    problems = [*settings.problems, *unread(RUN_ID.sub(" ", rest))]
    problems += [Problem("condition", reading.text)] if reading.conditional else []
    problems += [Problem("restriction", reading.text)] if reading.restricted else []
    return Blocked(rest, tuple(problems)) if problems else Resume(reading.text, settings)


def _intent(reading: Reading, settings: Settings, later: bool = False) -> Intent | None:
    """What one clause asks for, training apart; None where it asks for nothing known."""
    act, text = reading.act, reading.text
    if reading.negated:
        return Hold(what="stop") if act is Act.STOP else Hold(what="train") if act is Act.TRAIN else None
    if act is Act.STOP:
        if later:
            return Hold(what="later")
        if reading.question:
            return Status(text)
        if reading.conditional:
            return Blocked(text, (Problem("condition", text),))
        return Stop(text, every=EVERY.search(text) is not None)
    if act is Act.FORBIDDEN:
        return Unknown(text)
    if act is Act.HOW_LONG:
        return HowLong(text, settings)
    if act is Act.COMPARE and ALL_RUNS.search(text) and not COUNT.search(text) and not names.named(text):
        return Best(text)
    if act is Act.COMPARE:
        match = COUNT.search(text)
        word = (match[1] or match[2]).lower() if match else "2"
        return Compare(text, count=COUNTS.get(word) or max(2, int(word)))
    if act in (Act.EDIT, Act.CONFIG) and settings.changes and not reading.question:
        return EditConfig(text, settings)
    if act is Act.SELECT:
        return Select(text, settings)
    kind = READ_ONLY.get(act) if act else None
    return kind(text if kind in NAMED else "") if kind else None


READ_ONLY: dict[Act, type[Intent]] = {
    Act.HELP: Help,
    Act.LIST: ListEnvironments,
    Act.ENVIRONMENTS: ListEnvironments,
    Act.DESCRIBE: Describe,
    Act.CONFIG: ShowConfig,
    Act.TEST: TestInference,
    Act.STATUS: Status,
    Act.WATCH: Watch,
    Act.RESULTS: Results,
    Act.RUNS: ListRuns,
    Act.TOOLS: ListTools,
    Act.BEST: Best,
    Act.COST: Costs,
    Act.HOW: HowToTrain,
    Act.TRAIN_MENTION: HowToTrain,
}
NAMED = (Best, Describe, TestInference, Status, Watch, Results, ListRuns)
