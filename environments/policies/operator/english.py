"""Which act an English clause asks for, and whether it is meant as an order.

An order needs its verb where an order has it: first, or after words such as "please" and "could you". So
"it is hard to train gsm8k" and "if I train it" are no orders, whatever else they say.
"""

from __future__ import annotations

import re

from environments.policies.operator.acts import Act, Reading
from environments.policies.operator.english_phrases import (
    ASKING,
    CAN_YOU,
    CONDITION,
    HARMLESS,
    LEADS,
    NEGATION,
    ORDERS,
    PHRASES,
    POLITE,
    WEAK,
)

LOOKS = (Act.STATUS, Act.RESULTS, Act.RUNS, Act.ENVIRONMENTS)
"""Acts whose phrases say more than a verb such as "check" or "give me"."""


def read(clause: str, asks: bool, has_settings: bool) -> Reading:
    """The act that `clause` asks for; `asks` if its sentence ends with a question mark."""
    text = clause.strip(" \"'.,:")
    core = text
    while lead := LEADS.match(core):
        core = core[lead.end() :]
    negated = NEGATION.search(HARMLESS.sub(" ", text)) is not None
    act = next((act for act, pattern in ORDERS if pattern.search(core)), None)
    if negated and (act is None or NEGATION.match(core)):
        return Reading(_mentioned(text), negated=True, text=text)
    if act is None and WEAK.search(core) and not ASKING.search(text):
        act = _phrase(core, LOOKS) or Act.MAYBE_TRAIN
    if act in (Act.TEST, Act.SELECT, Act.EDIT):
        act = _phrase(text, LOOKS) or act
    act = act or _phrase(text)
    told = POLITE.search(text) or (CAN_YOU.search(text) and (has_settings or act is Act.STOP))
    return Reading(
        act,
        text=text,
        question=asks and not told,
        restricted=negated,
        conditional=CONDITION.search(core) is not None,
    )


def _mentioned(text: str) -> Act | None:
    """What a clause with a negation speaks of."""
    if re.search(r"\b(?:stop|abort|cancel|kill|end|interrupt)\b", text, re.IGNORECASE):
        return Act.STOP
    if re.search(
        r"\b(?:train|training|resume|start|starting|begin|launch|run|fine-?tune)\b", text, re.IGNORECASE
    ):
        return Act.TRAIN
    return None


def _phrase(text: str, among: tuple[Act, ...] | None = None) -> Act | None:
    return next(
        (act for act, pattern in PHRASES if (not among or act in among) and pattern.search(text)), None
    )
