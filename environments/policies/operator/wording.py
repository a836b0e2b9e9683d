"""A request as text: cleaned, in one form for every width of letter, and cut into clauses."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from rl_cli.core.cuts import one_line

LIMIT = 2000
"""Characters of a request that are read. A longer one is not acted on: its end might take back its start."""

SUPERSCRIPT = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
MARKS = str.maketrans(
    dict.fromkeys("‐‑‒–—−", "-") | dict.fromkeys("’‘`´", "'") | dict.fromkeys("“”«»「」『』《》", '"')
)
CJK = "\u3400-\u9fff"

SENTENCE_END = re.compile(r"([!?;。\n]+|\.(?=\s|$))")
VERB = (
    r"(?:stop|abort|cancel|train|retrain|fine-?tune|start|run|launch|list|show|display|describe|explain"
    r"|compare|watch"
    r"|monitor|resume|report|test|tell|let me know|notify me|give|set|select|choose|pick|use)\b"
)
CLAUSE_END = re.compile(
    rf",(?!\d{{3}}\b)|、|\bbut\b|\bthen\b|\bhowever\b|\band (?=(?:please )?{VERB})|但是|但|不过|然后|接着"
    rf"|而是"
    r"|(?<![要别不想])再(?=训练|启动|开始)|并且?(?=训练|告诉|显示|列出|停|比较|测试)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Clause:
    text: str
    asks: bool
    """The sentence ends with a question mark or a particle that asks."""


def normalise(request: str) -> str:
    """NFKC, without control and invisible characters and lone surrogates; one kind of dash and quote."""
    text = request[: LIMIT + 1].replace("，", ", ")
    text = re.sub(r"[⁺⁻⁰¹²³⁴-⁹]{1,4}", lambda match: "^" + match[0].translate(SUPERSCRIPT), text)
    text = unicodedata.normalize("NFKC", visible(text)).translate(MARKS)
    text = re.sub(r"[^\S\n]+", " ", text).strip()
    # "2 x 10^-4" and "10^-4" are how people write 2e-4 and 1e-4.
    text = re.sub(r"(?<![\w.])(\d{1,9}(?:\.\d{1,9})?) ?[x*×·] ?10 ?\^ ?([-+]?\d{1,3})\b", r"\1e\2", text)
    text = re.sub(r"(?<![\w.])10 ?\^ ?([-+]?\d{1,3})\b", r"1e\1", text)
    # A comma after an exponent or a decimal separates: "2e-4,500 steps" is not 4,500 steps.
    return re.sub(r"((?:\de[-+]?|\.)\d{1,12}),(?=\d)", r"\1, ", text)


def visible(text: str) -> str:
    """`text` with control characters as spaces, and without surrogates and format characters (Cs, Cf)."""
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if char == "\n" or category not in ("Cc", "Cf", "Cs"):
            kept.append(char)
        elif category == "Cc":
            kept.append(" ")
    return "".join(kept)


def is_chinese(text: str) -> bool:
    return re.search(f"[{CJK}]", text) is not None


def clauses(text: str) -> list[Clause]:
    """The parts of `text` that can each hold one order, in order."""
    pieces = SENTENCE_END.split(text)
    found = []
    for start in range(0, len(pieces), 2):
        sentence, mark = pieces[start], "".join(pieces[start + 1 : start + 2])
        asks = "?" in mark or re.search(r"[吗呢么]\s*$", sentence) is not None
        found += [Clause(part.strip(), asks) for part in CLAUSE_END.split(sentence) if part.strip(" \"'")]
    return found


def shorten(text: str, length: int = 80) -> str:
    """On one line, at most `length` characters."""
    return one_line(text, length)


class Voice:
    """Speaks the language of the request: `say("English", "中文")` is one of the two."""

    def __init__(self, request: str) -> None:
        self.chinese = is_chinese(request[:LIMIT])

    def __call__(self, english: str, chinese: str) -> str:
        return chinese if self.chinese else english

    @property
    def prompt_suffix(self) -> str:
        return ".zh" if self.chinese else ""
