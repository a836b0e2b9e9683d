"""The wish to be told when a run is over or goes wrong ("tell me when it is done"): to watch it."""

from __future__ import annotations

import re

from environments.policies.operator.acts import one_of

_LEAD = one_of(r"""
    and|then|also|but|just|please|pls|kindly|so|do|i want you to|i'd like you to|make sure to|remember to
    don'?t forget to|(?:can|could|would|will) you(?: please)?
""")
_WHO = one_of(r"""
    (?:tell|notify|ping|inform|message|text|alert|warn|remind|call|wake|update|email|mail|poke) (?:me|us)
    let (?:me|us) know|give (?:me|us) a (?:ping|shout|call|heads[ -]?up)|(?:report|get) back(?: to (?:me|us))?
    keep (?:me|us) (?:posted|informed|updated)|i want to know|say so|report
""")
_WHAT = one_of(r"""
    about it|the (?:final )?(?:results?|accuracy)|what happened|right away|immediately|at once|here|please
""")
_WHEN = r"when|whenever|once|as soon as|after|in case|how"
_FILL = one_of(r"""
    when|whenever|once|if|as soon as|it|its|it's|that|that's|this|they|everything|all|anything|something|or
    and|either|the|my|run|run's|training|training's|job|batch|data|samples|is|are|has|have|gets|been|of|course|also|else|how
    to|be|a|an|any|fully|completely|finally
    [\w.]*[\d_-][\w.-]*
""")
_BAD = one_of(r"""
    (?:goes|went|going|gone|turns) (?:wrong|bad|badly|off|south|astray|sideways)|fails?|crash(?:es)?|dies?
    breaks?|diverges?|stalls?|hangs|collapses?|errors?(?: out)?|explodes?|(?:gets? )?stuck|falls over
    (?:gets|becomes|looks) (?:bad|worse|stuck|wrong|strange|weird)
    (?:hits|has|runs into) (?:a |an |any )?(?:problem|error|snag|trouble)s?
""")
_END = one_of(rf"""
    done|finish(?:es|ed)?|over|complete[sd]?|ready|end(?:s|ed)|stop(?:s|ped)|through|failed|crashed|died|broken
    stalled|diverged|diverging|failing|wrong|trouble|success|failure|turns out|went|ended up
    {_BAD}
""")
_GAP = r"[ ,/]+"
_FILLED = rf"(?:(?:{_FILL}){_GAP}){{0,10}}"
_MORE = rf"(?:{_GAP}{_FILLED}(?:{_END})\b){{0,6}}"
_BODY = rf"{_FILLED}(?:{_END})\b{_MORE}"
_IT = r"(?:(?:it|that|this|anything|something|the (?:run|training)|training|my run) )?"
_LEADS = rf"(?:(?:{_LEAD})[ ,]+){{0,4}}"
_START = rf"(?:(?<=^)|(?<=[,.;!?\n ])){_LEADS}"
_TOLD = rf"(?:{_WHO})(?: (?:{_WHAT}))?"
_STOP = r"(?=\s*(?:$|[,.;!?\n]|and\b))"
ENGLISH = [
    rf"{_START}{_TOLD},? (?:{_WHEN}) (?P<body>{_BODY})",
    rf"{_START}{_TOLD},? if (?P<body>{_IT}(?:{_BAD})\b{_MORE})",
    rf"{_START}(?:when|once|as soon as|whenever) (?P<body>{_BODY}),? {_LEADS}{_TOLD}{_STOP}",
    rf"{_START}keep (?:me|us) (?:posted|informed|updated)(?P<body>){_STOP}",
    rf"{_START}tell me how it (?:ends|turns out|ended)(?P<body>){_STOP}",
    rf"{_START}let me know how it (?:ends|turns out|went|goes)(?P<body>){_STOP}",
]

_ABOUT = one_of("""
    一旦|如果|要是|假如|当|等到?|若|万一|它|训练|运行|跑|任务|这个|这次|全部|都|有|发生|任何|出了?
""")
_ABOUT = f"(?:{_ABOUT}){{0,8}}"
_SURE = one_of("""
    完成|做完|跑完|训完|训练完|练完|出错|报错|出问题|问题|错误|错|失败|发散|崩溃|异常|变差|卡住|不对劲|出岔子|意外
""")
_UNSURE = "好|完|停止|停|崩|挂|结束"
_MARK = "的时候|时候|的话|之后|以后|了|时|后|就|再|马上|立刻|立即"
_ITEM = rf"{_ABOUT}(?:(?:{_SURE})了?|(?:{_UNSURE})(?=了|\s*(?:{_MARK}|或|还是|、|告诉|通知|提醒))了?)"
_AFTER = rf"(?:\s*(?:{_MARK})\s*,?)*\s*(?:请|都|要|记得)*"
_TELL = "(?:告诉|通知|提醒|告知|叫|喊|告)(?:我们?|一声)(?:一声|一下|结果)?"
_LIST = rf"{_ITEM}(?:\s*(?:或者?|还是|以及|和|与|、|,|并且)\s*{_ITEM}){{0,5}}"
CHINESE = [
    rf"(?:并且?|然后)?在?(?P<body>{_LIST}){_AFTER}{_TELL}",
    rf"(?:并且?|然后)?(?:请)?(?:通知|提醒)我(?P<body>{_ABOUT}(?:什么时候|何时){_ABOUT}(?:{_SURE}|{_UNSURE}))",
]
PATTERNS = [re.compile(pattern, re.IGNORECASE | re.ASCII) for pattern in (*ENGLISH, *CHINESE)]
REFUSED = re.compile(
    r"(?:\b(?:don'?t|do not|never|without|no need to|needn'?t|not)\s+(?:\w+ ){0,2}"
    r"|不要|不用|别|不必|无需)\s*$",
    re.IGNORECASE,
)
"""What before such a wish makes it the opposite."""


def take_telling(text: str) -> tuple[str, str | None]:
    """Takes the wish out of a normalised request.

    Returns:
        The request without it; and its words about the run, which may name one, or None where there is no
        such wish.
    """
    told: list[str] = []

    def take(match: re.Match[str]) -> str:
        if REFUSED.search(text[: match.start()]):
            return match[0]
        told.append(match["body"])
        return ", "

    for pattern in PATTERNS:
        text = pattern.sub(take, text)
    return text, " ".join(told) if told else None
