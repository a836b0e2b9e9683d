"""Numbers in words, where they count something: "sixty steps", "六十步" become digits."""

from __future__ import annotations

import re

_UNITS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
UNITS = {word: value for value, word in enumerate(_UNITS.split())}
TENS = {word: 10 * value for value, word in enumerate(_TENS.split(), start=2)}
DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
PLACES = {"十": 10, "百": 100, "千": 1000}

_WORD = "|".join([*UNITS, *TENS, "hundred", "thousand"])
ENGLISH = re.compile(
    rf"(?<![\w-])((?:a )?(?:{_WORD})(?:(?: and |[ -])(?:{_WORD})){{0,5}})"
    r"(?= (?:more |grpo |training |sft |optimi[sz]er )?(?:steps?|rollouts?|samples|tasks|problems|hours?"
    r"|minutes?|percent|%))"
    rf"|(?:(?<=groups of )|(?<=batches of )|(?<=seed ))((?:{_WORD})(?:(?: and |[ -])(?:{_WORD})){{0,5}})\b",
    re.IGNORECASE | re.ASCII,
)
CHINESE = re.compile(
    # "一个模型" is "a model", not a count.
    r"(?!一\s?[个条份])([零〇一二两三四五六七八九十百千]{1,9})(?=\s?(?:步|个|条|份|道|小时|分钟|选[一1]))"
    r"|(?<=种子)([零〇一二两三四五六七八九十百千]{1,9})"
)


def to_digits(text: str) -> str:
    text = ENGLISH.sub(lambda match: _english(match[0]), text)
    return CHINESE.sub(lambda match: str(_chinese(match[0])), text)


def _english(words: str) -> str:
    total = current = 0
    for word in re.findall(r"[a-z]+", words.lower()):
        if word == "hundred":
            current = max(current, 1) * 100
        elif word == "thousand":
            total, current = total + max(current, 1) * 1000, 0
        else:
            current += UNITS.get(word, TENS.get(word, 0))
    return str(total + current)


def _chinese(numeral: str) -> int:
    if not any(char in PLACES for char in numeral):
        return int("".join(str(DIGITS[char]) for char in numeral))
    total = digit = 0
    for char in numeral:
        if char in PLACES:
            total += (digit or (1 if total == 0 else 0)) * PLACES[char]
            digit = 0
        else:
            digit = DIGITS[char]
    return total + digit
