"""Which act a Chinese clause asks for: the first verb decides, what precedes it may take it back.

As in English, an order to train may begin only with what orders begin with.
"""

from __future__ import annotations

from environments.policies.operator.acts import Act, Reading
from environments.policies.operator.chinese_phrases import (
    ACTS,
    ASKS,
    CONDITION,
    HARMLESS,
    HOW_LONG,
    LEADS,
    NEGATION,
    POLITE,
    WHETHER,
)


def read(clause: str, asks: bool, has_settings: bool) -> Reading:
    """The act that `clause` asks for; `asks` if its sentence ends with a question mark or particle."""
    text = clause.strip(" \"'.,:")
    plain = HARMLESS.sub(lambda match: "　" * len(match[0]), text)
    negation = NEGATION.search(plain)
    found = [
        (match.start(), order, act)
        for order, (act, pattern) in enumerate(ACTS)
        if (match := pattern.search(plain))
    ]
    if forbidden := [entry for entry in found if entry[2] is Act.FORBIDDEN]:
        found = forbidden
    if train := [entry for entry in found if entry[2] is Act.TRAIN]:
        found = [entry for entry in found if entry[2] not in (Act.EDIT, Act.MAYBE_TRAIN, Act.SELECT)] or train
    if any(kind in (Act.STATUS, Act.RESULTS, Act.RUNS, Act.ENVIRONMENTS, Act.CONFIG) for _, _, kind in found):
        found = [entry for entry in found if entry[2] is not Act.DESCRIBE]
    if any(kind is Act.RESUME for _, _, kind in found):  # "用学习率 1e-4 继续上次训练"
        found = [entry for entry in found if entry[2] not in (Act.EDIT, Act.SELECT)]
    found = [entry for entry in found if entry[2] is not Act.TRAIN_MENTION] or found
    start, _, act = min(found, default=(len(text), 0, None))
    if negation and negation.start() < start:
        return Reading(
            act if act in (Act.STOP, Act.TRAIN) else Act.TRAIN if _trains(act) else None,
            text=text,
            negated=True,
        )
    if act in (Act.TRAIN, Act.MAYBE_TRAIN) and (WHETHER.search(text) or not _leads(text[:start])):
        act = Act.HOW_LONG if HOW_LONG.search(text) else Act.HOW
    question = (asks or ASKS.search(text) is not None) and not POLITE.search(text)
    return Reading(
        act,
        text=text,
        question=question,
        restricted=negation is not None and act is not Act.STOP,
        conditional=CONDITION.search(text) is not None,
    )


def _leads(before: str) -> bool:
    """Can an order begin like this? "我想" can, "假设" (suppose) cannot."""
    while before and (lead := LEADS.match(before)):
        before = before[lead.end() :]
    return not before


def _trains(act: Act | None) -> bool:
    return act in (Act.MAYBE_TRAIN, Act.TRAIN_MENTION, Act.RESUME)
