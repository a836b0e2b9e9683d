"""One notation for many: ASCII digits and signs, a/b for fractions; LaTeX and Markdown undone."""

from __future__ import annotations

import re
import unicodedata

from environments.rewards.number_words import with_fractions

CURRENCY_SIGNS = "$¢-¥֏؋߾߿৲৳৻૱௹฿៛\u20a0-\u20cf﷼"
"""For a set of a regular expression: those of Unicode, but for wide ones, which `plain` makes narrow."""
CURRENCY = f"[{CURRENCY_SIGNS}]"

_CHARACTERS = str.maketrans(
    {
        **dict(zip("．：＝！？％＋＊／＃＜＞（）～＄﹩￠￥￡￦　", ".:=!?%+*/#<>()~$$¢¥£₩ ", strict=True)),
        **dict.fromkeys("\u2212\u2012\u2013\u2010\u2011\ufe63－", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\ufe0f\u20e3"),
        **dict.fromkeys("≦⩽≲", "≤"),
        **dict.fromkeys("≧⩾≳", "≥"),
        "，": ", ",
        "、": ", ",
        "٪": "%",
        "٬": ",",
        "٫": ".",
        "⁄": "/",
        "∕": "/",
        "’": "'",
        "·": "*",
    }
)
_WIDE_GROUP = re.compile(r"(?<=[０-９])，(?=[０-９]{3})")
_FOREIGN_DIGIT = re.compile(r"[^\W0-9a-zA-Z_]")
_VULGAR_FRACTION = re.compile(r"[\u00bc-\u00be\u2150-\u215e]")
_SUPERSCRIPTS = re.compile(r"[⁺⁻]?[⁰¹²³⁴-⁹]+")
_SUPERSCRIPT_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", "⁺")

_LATEX_STYLE = re.compile(
    r"\\(?:text(?:bf|it|rm|tt|sf)?|math(?:bf|rm|it|sf|bb|cal)|mbox|hbox|boldsymbol|operatorname|emph|underline"
    r"|displaystyle|left|right|[bB]igg?[lr]?|[lL]arge|LARGE|huge|quad|qquad|bf|rm|it|therefore"
    r"|textcolor\s*\{\w{1,20}\}|color\s*\{\w{1,20}\})(?![A-Za-z])\*?"
)
_ARGUMENT = r"\s*+(?:\{{\s*+({0}[^{{}}]*+)\}}|(\d))"
_FRACTION = re.compile(r"\\[dtc]?frac" + _ARGUMENT.format("") + _ARGUMENT.format(""))
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)")
_EXPONENT = r"([\s})]{0,3})\^\s?(?:\{-?\d{1,3}\}|-?\d{1,3})"
_EXPONENT_OF_UNIT = re.compile(
    rf"(?<=[A-Za-z]{{2}}|\d[A-Za-z]|/[A-Za-z]){_EXPONENT}|(?<=\d\s[A-Za-z]){_EXPONENT}"
    rf"|(?<=[A-Za-z]){_EXPONENT}(?![\s$)}}]*[-+*/=])"
)
"""18 m^2, but not x^2 = 18."""
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z])_(?:\{\d{1,3}\}|\d{1,3}(?!\d))")
_DIGIT_GAP = re.compile(r"(?<=\d)(?:[\u00a0\u2009\u202f\u2008']|\\[!,:; ])(?=\d{3}(?!\d))")
_LATEX_LINE_BREAK = re.compile(r"\\\\(?![A-Za-z])")
_LATEX_SPACE = re.compile(r"\\[,;: ]")
_COMMA_AND_GAP = re.compile(r"(?<=\d)(?:\{,\}|,)(?:\\[!,:; ])?(?=\d{3}(?!\d))")
_QUOTE = re.compile(rf"^[ \t]*>+(?=[ \t])(?![ \t]*-?{CURRENCY}?\d)", re.M)
"""Of a text; "> 18" is a bound."""
_EMPHASIS = re.compile(rf"(?<![\w)}}])(?<![\w)}}] )(\*|__?)([-+]?{CURRENCY}?\d[\d.,]*)\1(?!\w)")
_HTML = re.compile(r"</?(?!answer\b)[A-Za-z][\w-]{0,20}(?:\s[^<>]{0,80})?/?>", re.I)
_DOLLARS_AND_CENTS = re.compile(r"(?<=\d)\s+dollars?,?(?:\s+and)?\s+(\d{1,2})\s+cents?\b", re.I)
_CURRENCY_CODE = re.compile(r"\b(?:rs\.?|usd|eur|gbp|inr|rmb|cny|jpy)\s?(?=\.?\d)", re.I)
_MINUS = re.compile(rf"(?:\b(?:minus|negative)\s+|负|零下)(?={CURRENCY}?\d)", re.I)
_ESCAPED_NEWLINE = re.compile(r"\\n(?![A-Za-z])")
_BACKSLASHED = re.compile(r"\\([$%#&])")
_ARROW = re.compile(
    r"\\(?:(?:Long|long|x)?[rR]ightarrow|implies|to|longmapsto|mapsto)(?![A-Za-z])(?:\s?\{\s?\})?"
    r"|(?<![-=<>])[-=]{1,3}>(?!>)|[→⇒⟶⟹➔➜➡⇨↦⟼]\ufe0f?"
)
_BRACKET = re.compile(r"\\[()\[\]]")


def plain(text: str) -> str:
    """`text` in one notation; what it does not know stays. Linear in its length."""
    if not text.isascii():
        text = _ascii(text)
    text = _ARROW.sub(" = ", text)
    if "\\" in text:
        text = _without_latex(text)
    text = _COMMA_AND_GAP.sub(",", text)
    if "<" in text:
        text = _HTML.sub(" ", re.sub(r"<sup>", "^", text, flags=re.I))
    text = re.sub(r"(?<=\d)\s?\*\*\s?(?=\d)", "^", _QUOTE.sub(" ", text))
    if "^" in text:
        text = _EXPONENT_OF_UNIT.sub(_gap_only, text)
    text = _SUBSCRIPT.sub("", text)
    text = _EMPHASIS.sub(r"\2", _DIGIT_GAP.sub("", text).replace("**", "").replace("`", " "))
    if "\\" in text:
        text = _LATEX_SPACE.sub(" ", text)
    text = _DOLLARS_AND_CENTS.sub(lambda cents: f".{int(cents[1]):02} dollars", text)
    text = with_fractions(text)
    return _MINUS.sub("-", _CURRENCY_CODE.sub("$", text))


def _ascii(text: str) -> str:
    text = _SUPERSCRIPTS.sub(lambda power: "^" + power[0].translate(_SUPERSCRIPT_DIGITS), text)
    text = _VULGAR_FRACTION.sub(lambda c: _gap(c) + unicodedata.normalize("NFKC", c[0]), text)
    text = _WIDE_GROUP.sub(",", text)
    text = _FOREIGN_DIGIT.sub(lambda c: str(unicodedata.decimal(c[0], c[0])), text)
    return text.translate(_CHARACTERS)


def _without_latex(text: str) -> str:
    text = _LATEX_LINE_BREAK.sub(" ; ", text)
    text = text.replace("\\!", "")  # a negative space, as in 70\!,\!000
    text = _BACKSLASHED.sub(r"\1", _ESCAPED_NEWLINE.sub("\n", text))
    text = _BRACKET.sub(" ", _LATEX_STYLE.sub(" ", _DEGREES.sub("°", text)))
    text = text.replace("\\over ", "/").replace("\\approx", "≈").replace("\\sim", "~")
    return _FRACTION.sub(lambda f: _gap(f) + f"{f[1] or f[2]}/{f[3] or f[4]} ", text)


def _gap_only(exponent: re.Match[str]) -> str:
    return exponent[1] or exponent[2] or exponent[3] or ""


def _gap(fraction: re.Match[str]) -> str:
    """What keeps a fraction apart from the whole number before it, and not from its sign."""
    before = fraction.string[fraction.start() - 1 : fraction.start()]
    return " " if before.isdigit() else ""
