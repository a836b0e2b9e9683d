"""Numbers that an answer strikes out or denies: a sign in place of each says why it does not count."""

from __future__ import annotations

import re

from environments.rewards.number_words import ENGLISH_NUMBER, begins_with_number_word
from environments.rewards.plain_text import CURRENCY

STRUCK, DENIED = "\ue000", "\ue001"
SIGNS = f"[{STRUCK}{DENIED}]"
_REASONS = {STRUCK: "the number is struck out", DENIED: "the number is denied"}

_STRUCK = re.compile(
    r"~~[^~\n]{1,200}~~"
    r"|(?!\A<s>(?:(?!</s>).)*</s>\s*\Z)<(?P<tag>del|s|strike)(?:\s[^<>]{0,80})?>"
    r"(?:(?!</?(?P=tag)\b).)*?</(?P=tag)\s?>"
    r"|<(?P<styled>\w{1,10})\s[^<>]{0,80}line-through[^<>]{0,80}>[^<>]{0,200}</(?P=styled)\s?>"
    r"|\\(?:[xbh]?cancel|sout|st)\s?\{(?:[^{}\n]++|\{[^{}\n]{0,80}\}){1,20}+\}",
    re.I | re.S,
)
_MARKUP = re.compile(r"<[^<>]*>|\\[a-z]+\s?\{|[~*_$}]")
_OVERLAY = re.compile("[\u0335-\u0338]")
_OVERLAID = re.compile("(?:[^\n][\u0335-\u0338])+")

_NUMBER = rf"(?:[-+]?\s?{CURRENCY}?\s?-?\.?\d[\d.,]*(?<![.,])|(?:{ENGLISH_NUMBER})(?=\s*(?:[.,;!\n*]|\Z)))"
_OPENING = r"[ \t$*_\"'(\[{]{0,8}(?:\\f?boxed\s?\{[ \t$*{]{0,4})?"
_MANNER = (
    r"(?:[ \t]*+\b(?:quite|really|exactly|yet|even|actually|simply|just|only|merely|necessarily|precisely"
    r"|always|truly|definitely|likely|possibly|probably|clearly|certainly|surely|ever|still|in fact|at all"
    r"|anywhere|nowhere|near|close to|far from|nearly|almost|about|around|approximately|supposed to|meant to"
    r"|going to|be|been|equal|equals|to|the|an?|my|our|your|final|correct|right|true|real|answer|number|value"
    r"|result|solution|of|have|has|got|make|give|total|come|reach|cost|as \w{2,8} as|[a-z]{3,12}ly)\b){0,6}+"
)
_NOT = (
    r"(?:\bneither\s[^.\n]{0,60}?\bnor\b|\b(?:can)?not\b|n't\b|\bno longer\b(?!\s+than)|\bnever\b"
    r"|\b(?:anything\s+but|(?:anything )?other than|except(?:\s+for)?|rather than|instead of|unlike"
    r"|as opposed to|far from|nowhere near|no way|by no means|used to be|all but"
    r"|I (?:retract|reject|take back|withdraw)|wrong to (?:say|answer|claim)"
    r"|(?:cease[sd]?|fail(?:s|ed)?) to)\b"
    r"|(?:\A|[.!\n]\s?)(?:ignore|disregard|forget)\b"
    r"|≠|\\neq?\b|!=|不(?:再|会|可能|应该?|一定)?(?:是|等于|为)|而非|并非)"
)
_DENIER = (
    r"(?:(?:\b(?:do|does|did|can|could|would|will)(?:\s?not|n't)|\bnever|\bcan't|\bwon't|\bnot)\s+(?:really\s+)?"
    r"(?:think|believe|say|saying|agree|claim|claiming|see|suppose|expect|mean|accept|feel|find|imagine|guess"
    r"|sure|certain|convinced|confident|clear|know)(?!\s+so\b)"
    r"|(?<!no )(?<!out )(?<!any )(?<!a )(?<!not )(?<!n't )\b(?:doubt|deny|disagree)\b|\bnobody\s+\w+"
    r"|\bno one\s+\w+|\bno way|\b(?:unlikely|impossible|doubtful)\s+that"
    r"|(?:\bnot|n't)\s+(?:true|possible|right|correct|the case|be)\s+that"
    r"|\b(?:wrong|false|incorrect|untrue|mistaken|tempting|mistake)\s+(?:that|to\s+\w+)"
    r"|\b(?:one|you|they|some|many|people|others|someone)\s+(?:might|may|could|would)\s+(?:think|say|believe"
    r"|guess|claim|answer|expect)"
    r"|\b(?:wrong|false|incorrect|mistaken|tempting)\s+(?:final\s+)?(?:answer|result|total|value|solution)\b"
    r"|不认为|不觉得|不相信|不确定|怀疑)"
)
_GAP = (
    r"(?:(?!\b(?:but|so|however|and|because|although|though|yet|then|therefore|thus|hence|while|still)\b)"
    r"[^.,;!?\n\d\\:]){0,60}?"
)
_STATING = r"(?:\b(?:is|are|was|be|equals|were|would be|will be|must be|should be)\b|'s\b|[=:是为])"
_DENIED = re.compile(
    rf"(?:{_NOT}|{_DENIER}{_GAP}{_STATING}){_MANNER}{_OPENING}{_NUMBER}"
    rf"(?:(?:,\s*{_NUMBER}){{0,8}},?\s*n?or\s+{_NUMBER})?",
    re.I,
)
_DENIED_BEFORE_VERB = re.compile(
    rf"{_DENIER}\s+(?:that\s+)?{_OPENING}{_NUMBER}(?=[\s*$_]{{1,4}}(?:is|was|would)\b)", re.I
)
_DENIED_AFTER = re.compile(
    rf"(?<![\w.,])-?{CURRENCY}?\d[\d.,]{{0,20}}(?<![.,]){CURRENCY}?(?:\s[A-Za-z]{{1,12}})?\s"
    r"(?:(?:(?:is|was|would|could|does|did|should)(?:n't|\snot|\sno longer)|can't|cannot|won't|will not)"
    r"\s(?:be\s)?(?:quite\s|really\s)?(?:it\b(?!\s)|(?:work|fit|satisfy|match)\b|(?:the\s|my\s|an?\s)?"
    r"(?:\w+\s)?(?:answer|right|correct|result|solution|total)\b)"
    r"|(?:is|was|would be|seems|looks)\s(?:wrong|incorrect|false|not it\b|a mistake"
    r"|too (?:high|low|large|small|big|much|many|few)))",
    re.I,
)
_CUE_WORDS = (
    "not|n't|never|no |nor|nobody|other than|except|rather|instead|unlike|oppos|far from|nowhere|anything"
    "|used to|all but|cease|fail|doubt|deny|disagree|unlikely|impossible|wrong|false|incorrect|untrue|mistake"
    "|tempting|might|may |could|would|too |retract|reject|take back|withdraw|ignore|disregard|forget"
    "|≠|\\ne|!=|不|非|怀疑"
)
_WITHIN_SENTENCE = re.compile(r"(?<=[a-zI,])(?:[ \t]++\n?|\n)[ \t]*(?=[a-z])")
_CUES = _CUE_WORDS.split("|")
"""One of them is in every denial: most texts have none, and are passed over fast."""


def without_struck(text: str) -> str:
    """`text` with STRUCK for each number that HTML, Markdown, LaTeX or Unicode strikes out.

    <s> and </s> around all of it are a model's tokens for the beginning and the end, and strike nothing out.
    """
    if _OVERLAY.search(text):
        text = _OVERLAID.sub(_struck, text)
    return _STRUCK.sub(_struck, text)


def without_denied(text: str) -> str:
    """`text`, in plain notation, with DENIED for each number that it says is not the one.

    A sentence may go on in the next line.
    """
    unwrapped = _WITHIN_SENTENCE.sub(" ", text)
    lowered = unwrapped.lower()
    if not any(cue in lowered for cue in _CUES):
        return text
    denied = unwrapped
    for denial in (_DENIED, _DENIED_BEFORE_VERB, _DENIED_AFTER):
        denied = denial.sub(DENIED, denied)
    return text if denied is unwrapped else denied


def withdrawal(text: str) -> str | None:
    """Why a text with no other number states none: its number is struck out or denied; None if neither."""
    return next((reason for sign, reason in _REASONS.items() if sign in text), None)


def _struck(piece: re.Match[str]) -> str:
    content = _MARKUP.sub("", piece[0]).strip()
    return STRUCK if re.search(r"\d", content) or begins_with_number_word(content) else " "
