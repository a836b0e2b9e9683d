"""Numbers in English and Chinese words as digits: twenty-five is 25, two thirds 2/3, 一万八千 18000."""

from __future__ import annotations

import re

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_SMALL = {word: value for value, word in enumerate(f"{_ONES} sixteen seventeen eighteen nineteen".split())}
_SMALL |= {word: 10 * tens for tens, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty"], 2)}
_SMALL |= {"seventy": 70, "eighty": 80, "ninety": 90}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8}
_PARTS |= {"tenth": 10}
_WORD = "|".join(sorted([*_SMALL, "hundred", *_SCALES], key=len, reverse=True))
_AN = r"(?:an?\s+(?=hundred|thousand|million|billion))?"
ENGLISH_NUMBER = rf"\b{_AN}(?:{_WORD})\b(?:(?:\s+and\s+|,?\s+|-)(?:{_WORD})\b)*"
"""Regular expression of a run of number words, which need not make one number."""
_PART = "|".join(_PARTS)
_ENGLISH = re.compile(rf"{ENGLISH_NUMBER}(?:[\s-]+({_PART})s?\b)?", re.I)
_AND_PART = rf"\s+and\s+(an?|one|two|three|four|five|seven)[\s-]+({_PART})s?\b"
_AND_PART_AFTER_DIGITS = re.compile(r"(?<=\d)()" + _AND_PART, re.I)
_AND_PART_AFTER_WORDS = re.compile(rf"\b({_WORD})" + _AND_PART, re.I)
_ALONE = re.compile(rf"(?:an?\s+({_PART})|(half))\b(?=[\s*$]*(?:[.!\n]|\Z))", re.I)
_PRONOUN = re.compile(
    r"one\s+(?:of|that|which|who|with|can|could|may|might|should|must|would|has|is)\b", re.I
)

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_UNIT_LEFT_OUT = re.compile(r"[一二两三四五六七八九]{2}|[百千万亿][一二两三四五六七八九]$")
_NUMERAL = r"(?!一[样共起定般直些])[零〇一二两三四五六七八九十百千万亿]+"
_CHINESE = re.compile(rf"(百分之)?({_NUMERAL})(?:分之({_NUMERAL})|点([零〇一二三四五六七八九]+))?")
_START = re.compile(
    rf"(?:(?:{_ENGLISH.pattern})|{_ALONE.pattern}|(?:minus|negative)\s|[负]?{_CHINESE.pattern})", re.I
)


def begins_with_number_word(text: str) -> bool:
    """Whether `text` begins with a number in words: "eighteen apples", not "one of them"."""
    return bool(_START.match(text)) and not _PRONOUN.match(text)


def words_to_digits(text: str) -> str:
    """`text` with its number words written in digits; runs that are no number (two three) stay."""
    if alone := _ALONE.match(text):
        return f"1/{_PARTS[(alone[1] or alone[2]).lower()]}"
    text = _AND_PART_AFTER_WORDS.sub(_fraction, text)
    return _CHINESE.sub(_chinese, _ENGLISH.sub(_english, text))


def with_fractions(text: str) -> str:
    """`text` with 2 1/2 for "2 and a half", and alike for the other parts."""
    return _AND_PART_AFTER_DIGITS.sub(_fraction, text)


def _fraction(run: re.Match[str]) -> str:
    return f"{run[1]} {_SMALL.get(run[2].lower(), 1)}/{_PARTS[run[3].lower()]}"


def _english(run: re.Match[str]) -> str:
    part = run[1]
    words = run[0][: run.start(1) - run.start() if part else None].lower()
    value = _english_value(re.findall(r"[a-z]+", words))
    if value is None:
        return run[0]
    return f"{value}/{_PARTS[part.lower()]}" if part else str(value)


def _english_value(words: list[str]) -> int | None:
    """None where the words do not make one number."""
    total = group = 0
    below, scale_below = 1000, 10**12
    for word in words:
        if word in ("a", "an"):
            group = 1
        elif word in _SMALL:
            if _SMALL[word] >= below:
                return None
            group += _SMALL[word]
            below = 10 if _SMALL[word] >= 20 else 0
        elif word == "hundred":
            if not 0 < group < 100:
                return None
            group, below = group * 100, 100
        elif word in _SCALES:
            if not group or _SCALES[word] >= scale_below:
                return None
            total, group, below, scale_below = total + group * _SCALES[word], 0, 1000, _SCALES[word]
    return total + group


def _chinese(run: re.Match[str]) -> str:
    percent, whole, upper, decimals = run.groups()
    value = _chinese_value(whole)
    if value is None or (percent and upper):
        return run[0]
    if upper:  # 四分之三: the denominator comes first
        above = _chinese_value(upper)
        return run[0] if above is None else f"{above}/{value}"
    written = str(value) + ("." + "".join(str(_DIGITS[c]) for c in decimals) if decimals else "")
    return written + "%" if percent else written


def _chinese_value(numeral: str) -> int | None:
    """None where two digits stand together, or the last unit is left out (一百二 is 120, and not 102)."""
    if all(c in _DIGITS for c in numeral):
        return int("".join(str(_DIGITS[c]) for c in numeral)) if len(numeral) < 40 else None
    if _UNIT_LEFT_OUT.search(numeral) or len(numeral) > 40:
        return None
    total = section = digit = 0
    for character in numeral:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _TENS:
            section += (digit or 1) * _TENS[character]
            digit = 0
        elif character == "万":
            total, section, digit = total + (section + digit) * 10**4, 0, 0
        else:
            total, section, digit = (total + section + digit) * 10**8, 0, 0
    return total + section + digit
