"""Which environment, or which run, a text names. Nothing is guessed: a near miss is said, a far one asked."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

from environments.policies.operator.acts import one_of
from environments.policies.operator.wording import CJK
from rl_cli.core.errors import nearest

WORD = re.compile(rf"[^\W{CJK}]+(?:[-./][^\W{CJK}]+)*")
WORDS_READ = 60
"""Words of a request that are compared with names."""
MISSPELLED = 0.8
"""Similarity from which a word is a misspelled name."""
_FILLERS = """
    a an the this that it its them one some any another new next first last latest current again anyway now
    then today here there i we you me us my our your for with without of to on in at by from until as is be
    are and or so do did let lets please pls kindly just also only really quickly soon asap fast quick fresh
    good better best great nice decent simple basic short small full real train trained training retrain
    re-train fine-tune finetune fine-tuning post-train post-training start restart begin launch run runs job
    jobs go ahead make build create give get got teach learn use using want need like would could can will
    should must try help select choose pick describe explain show tell about test smoke-test inference check
    switch look details info stop abort cancel kill halt end watch monitor status progress results result
    model models network policy agent llm lm language ai environment environments env task tasks dataset
    data problem problems question questions reinforcement rl rlvr grpo via through same default defaults
    settings config profile machine cpu laptop regardless nevertheless force even all what what's ask don't
    not if possible you're i'd i'm hi hello hey ok okay yes thanks thank able until up
"""
FILLERS = frozenset(_FILLERS.split())
"""Words of a request that name nothing."""
CHINESE_FILLERS = re.compile(
    one_of("""
    训练|微调|强化学习|模型|环境|一个|一下|一次|请|帮我|帮忙|麻烦|给我|我想|我要|我们|想要|希望|开始|启动|运行|跑
    重新|再|用|使用|在|上|来|把|对|拿|基于|以|的|了|吧|吗|呢|啊|和|并|先|现在|马上|立即|就|它|这个|那个|还是|要|强制
    做|练|选择|选|切换到|测试|推理|介绍|描述|解释|查看|看看|是什么|什么|详情|开|数据集|任务|个|为|到|可以|能|停止
    当前|这次|不要问我|不问我|问我
    """)
)
TRANSLATED = {
    "计算器": "calculator",
    "应用题": "word problems",
    "算术": "arithmetic",
    "数学": "math",
    "小学": "grade-school",
    "工具": "tool",
    "代码": "code",
}


@dataclass(frozen=True)
class Match:
    """`name` is None unless exactly one environment is meant."""

    kind: str
    """exact, misspelled, described, none (nothing is named), unknown, several"""
    name: str | None = None
    said: str = ""
    """What the request called it."""
    others: tuple[str, ...] = ()
    """For unknown: the nearest names; for several: the candidates."""
    unread: tuple[str, ...] = ()
    """Words that neither name the environment nor say anything that is known."""


def squash(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def environment(subject: str, rows: list[dict[str, Any]]) -> Match:
    """The environment that `subject` names, of the `environments` rows of rl_list_environments."""
    descriptions = {
        row["name"]: str(row.get("description") or "") for row in rows if isinstance(row.get("name"), str)
    }
    words = [match[0] for match in WORD.finditer(subject)][:WORDS_READ]
    exact, used = _exact(subject, words, list(descriptions))
    left = [word for i, word in enumerate(words) if i not in used and not _filler(word)]
    topics = [topic for topic in TRANSLATED if topic in subject]
    chinese = CHINESE_FILLERS.sub(" ", re.sub(rf"[^{CJK}]+|{'|'.join(topics) or '$'}", " ", subject)).split()
    if len(exact) == 1:
        return Match(
            "exact", exact[0], exact[0], unread=(*left, *(part for part in chinese if len(part) > 1))
        )
    if exact:
        return Match("several", others=tuple(exact))
    if near := _misspelled(left, list(descriptions)):
        word, name = near
        return Match("misspelled", name, word, unread=tuple(w for w in left if w not in word.split()))
    if not left and not topics and not chinese:
        return Match("none")
    what = " ".join(left) or "".join(topics) or " ".join(chinese)
    looks_like_name = any(re.search(r"[\d_]", word) for word in left)
    best = (
        [] if looks_like_name else _described([*left, *(TRANSLATED[topic] for topic in topics)], descriptions)
    )
    if len(best) == 1:
        return Match("described", best[0], what)
    if best:
        return Match("several", said=what, others=tuple(best))
    return Match("unknown", said=what, others=tuple(nearest(what, list(descriptions))) or tuple(descriptions))


def _filler(word: str) -> bool:
    return word.casefold() in FILLERS or len(word) == 1


def _exact(subject: str, words: list[str], names: list[str]) -> tuple[list[str], set[int]]:
    """Names that stand in the text as whole words ("GSM8K mini" is gsm8k-mini), the longest first."""
    by_form = {squash(name): name for name in names}
    found: list[str] = []
    used: set[int] = set()
    for length in (4, 3, 2, 1):
        for start in range(len(words) - length + 1):
            span = set(range(start, start + length))
            name = by_form.get(squash("".join(words[start : start + length])))
            if name and not span & used:
                used |= span
                found += [name] if name not in found else []
    for form, name in by_form.items():
        if re.search(f"[{CJK}]", form) and form in squash(subject) and name not in found:
            found.append(name)
    return found, used


def _misspelled(words: list[str], names: list[str]) -> tuple[str, str] | None:
    """The one name that some of the words nearly spell. Other digits are another name, no misspelling."""
    scores: dict[str, tuple[float, str]] = {}
    for length in (2, 1):
        for start in range(len(words) - length + 1):
            said = " ".join(words[start : start + length])
            form = squash(said)
            for name in names:
                target = squash(name)
                if (
                    len(form) < 4
                    or abs(len(form) - len(target)) > 3
                    or re.sub(r"\D", "", form) != re.sub(r"\D", "", target)
                ):
                    continue
                score = (
                    0.9
                    if sorted(form) == sorted(target)
                    else difflib.SequenceMatcher(None, form, target).ratio()
                )
                if score >= MISSPELLED and score > scores.get(name, (0.0, ""))[0]:
                    scores[name] = score, said
    ranked = sorted(scores.items(), key=lambda item: -item[1][0])
    if not ranked or (len(ranked) > 1 and ranked[0][1][0] == ranked[1][1][0]):
        return None
    return ranked[0][1][1], ranked[0][0]


def _described(words: list[str], descriptions: dict[str, str]) -> list[str]:
    """The environments whose names or descriptions hold most of the words, if they hold at least half."""
    wanted = [part for word in words for part in re.split(r"[\W_]+", word.casefold()) if len(part) >= 4]
    scores = {}
    for name, description in descriptions.items():
        known = re.split(r"[\W_]+", f"{name} {description}".casefold())
        hits = sum(
            any(entry.startswith(part) or (len(entry) > 4 and part.startswith(entry)) for entry in known)
            for part in wanted
        )
        if wanted and hits * 2 >= len(wanted):
            scores[name] = hits
    return [name for name, hits in scores.items() if hits == max(scores.values())]


def runs(subject: str, rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The runs that `subject` names (by id, by the start of one, or as the newest of an environment), newest
    first in `rows`, and the words that name none."""
    ids = [row["id"] for row in rows if isinstance(row.get("id"), str)]
    newest: dict[str, str] = {}
    for row in rows:
        if isinstance(row.get("id"), str) and isinstance(row.get("environment"), str):
            newest.setdefault(squash(row["environment"]), row["id"])
    found, unknown = [], []
    for word in named(subject):
        exact = [run_id for run_id in ids if run_id.casefold() == word.casefold()]
        starts = [run_id for run_id in ids if run_id.casefold().startswith(word.casefold())]
        by_environment = newest.get(squash(word))
        match = exact or ([by_environment] if by_environment else starts)
        if len(match) == 1:
            found += [match[0]] if match[0] not in found else []
        else:
            unknown.append(word)
    return found, unknown


def named(subject: str) -> list[str]:
    """The words of `subject` that look like the name of a run or an environment."""
    return [
        word
        for match in WORD.finditer(subject)
        if (word := match[0])
        and not _filler(word)
        and len(word) >= 3
        and (re.search(r"[\d_]", word) or "-" in word)
    ]


def content_words(subject: str) -> list[str]:
    """The words of `subject` that say more than an order does ("stop the old run" -> "old")."""
    return [match[0] for match in WORD.finditer(subject) if not _filler(match[0])][:WORDS_READ]
