"""The settings in a request: "60 steps with lr 2e-4" -> {"grpo.steps": 60, "grpo.learning_rate": 0.0002}.

Values are passed on as they were said, also impossible ones: the config tool refuses them with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from environments.policies.operator.acts import one_of
from environments.policies.operator.numerals import to_digits

# A number that stands alone: no part of a name ("gsm8k"), of a version, or of a product ("2x10-4").
_DIGITS = r"\d{1,3}(?:,\d{3}){1,3}|\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?|\.\d{1,12}"
N = rf"(?<![A-Za-z0-9_.])(?<!\d,)([-+]?(?:{_DIGITS})k?)(?![A-Za-z0-9_]|\.\d|,\d{{3}}\b|\s?[x*×·^/]\s?\d)"
IS = r"\s*(?:=|:|\bof\b|\bto\b|\bis\b|\bat\b|\bas\b|设置为|设为|设成|改为|改成|调到|调成|为|是|用)?\s*"
_ABOUT = r"no more than|at most|up to|max(?:imum)?(?: of)?|for|exactly|only|about|around|最多|大约|大概"
ABOUT = rf"(?:(?:{_ABOUT})\s*)?"
_TO = one_of("""
    until|till|up to|to|it|the|an|a|reach(?:es|ing)?|hits?|gets|is|at least|at|above|over|more than|of|stop
    target
    maximum|max|goal|validation|test|accuracy|>=?|=|:|直到|直至|达到|超过|至少|验证集?|测试集?|目标|最高
    最大
    准确率|正确率|精度|到|至|为|是|的
""")
TO = rf"(?:(?:{_TO})\s*)"
PERCENT = r"(?<![A-Za-z0-9_.])([-+]?\d{1,6}(?:\.\d{1,6})?)\s*(%|percent\b)"
ACCURACY = r"(?:validation |test )?(?:accuracy|correct|准确率|正确率|精度)"
PER_TASK = r"\s*(?:rollouts|samples|completions|attempts|answers)\s*(?:per|/|for each|for every|an?|each)\s*"


@dataclass(frozen=True)
class Problem:
    """Something that keeps a request from being carried out: never guessed at, always said."""

    kind: str
    """conflict, unclear, unread, model, restriction, condition, several, forbidden"""
    text: str


@dataclass
class Settings:
    changes: dict[str, Any] = field(default_factory=dict)
    """Dotted config field -> value."""
    tasks_per_step: int | float | None = None
    profile: str | None = None
    problems: list[Problem] = field(default_factory=list)

    def put(self, name: str, value: Any) -> None:
        if name in self.changes and self.changes[name] != value:
            self.problems.append(Problem("conflict", f"{name}: {self.changes[name]}, {value}"))
        self.changes[name] = value


Reader = Callable[[Settings, re.Match[str]], None]


def number(written: str) -> int | float:
    """An int where the value is whole, so that "1e3 steps" are 1000 steps and "2.5 steps" stay 2.5."""
    factor = 1000 if written[-1:] in "kK" else 1
    value = float(written.rstrip("kK").replace(",", "")) * factor
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _number(name: str) -> Reader:
    return lambda settings, match: settings.put(name, number(match[1]))


def _float(name: str) -> Reader:
    return lambda settings, match: settings.put(name, float(number(match[1])))


def _fixed(name: str, value: Any) -> Reader:
    return lambda settings, match: settings.put(name, value)


def _seconds(name: str, unit_seconds: float) -> Reader:
    """The time in match[1] of the unit in match[2], in units of `unit_seconds`."""

    def read(settings: Settings, match: re.Match[str]) -> None:
        unit = match[2].lower()
        seconds = 3600 if unit[0] == "h" or "时" in unit else 60 if unit[0] == "m" or "分" in unit else 1
        settings.put(name, round(number(match[1]) * seconds / unit_seconds, 4))

    return read


def _accuracy(settings: Settings, match: re.Match[str]) -> None:
    value = float(number(match[1]))
    percent = match.re.groups > 1 or value > 1  # the patterns with a unit have a group for it
    settings.put("health.target_accuracy", round(value / 100, 6) if percent else value)


def _dotted(settings: Settings, match: re.Match[str]) -> None:
    written = match[2].rstrip(".")
    try:
        value = json.loads(written)
    except ValueError:
        value = written.strip("'\"")
    settings.put(
        match[1], {"none": None, "off": "off"}.get(value, value) if isinstance(value, str) else value
    )


def _model(settings: Settings, match: re.Match[str]) -> None:
    settings.put("model.name", match[1].rstrip(".").strip("'\""))


def _path(settings: Settings, match: re.Match[str]) -> None:
    settings.put("environment.options.path", match[1].rstrip(".").strip("'\""))


def _lora(settings: Settings, match: re.Match[str]) -> None:
    settings.put("model.lora", {"rank": number(match[1])})


def _tasks_per_step(settings: Settings, match: re.Match[str]) -> None:
    settings.tasks_per_step = number(match[1])


def _profile(settings: Settings, match: re.Match[str]) -> None:
    settings.profile = (match[1] or match[2]).lower()


TIME = r"(hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|个?小时|分钟|秒)(?![A-Za-z])"
PATTERNS: list[tuple[str, Reader]] = [
    (
        r"\b([a-z]+(?:\.[a-z_]+)+)(?:\s*[=:]\s*|\s+to\s+|\s*(?:改为|改成"
        r"|设为)\s*)(\[[^\]]*\]|\{[^}]*\}|\"[^\"]*\"|[^\s,;。]+)",
        _dotted,
    ),
    (r"https?://huggingface\.co/([\w-]+/[\w.-]+)", _model),
    (
        rf"(?:check|report|look|update)\w*(?: \w+){{0,3}}? every {N}\s*{TIME}",
        _seconds("health.check_every_seconds", 1),
    ),
    (
        rf"每(?:隔)?\s*{N}\s*{TIME}\s*(?:检查|汇报|报告|看)(?:一次|一下)?",
        _seconds("health.check_every_seconds", 1),
    ),
    (rf"(?:checkpoint|save)\w*(?: \w+){{0,2}}? every {N}\s*steps?", _number("grpo.checkpoint_every")),
    (rf"每(?:隔)?\s*{N}\s*步\s*(?:保存|存)(?:一次|一下)?(?:检查点)?", _number("grpo.checkpoint_every")),
    (rf"(?:validat|evaluat)\w*(?: \w+){{0,2}}? every {N}\s*steps?", _number("evaluation.every")),
    (rf"每(?:隔)?\s*{N}\s*步\s*(?:评估|验证|评测)(?:一次|一下)?", _number("evaluation.every")),
    (
        r"(?:without|no|skip)(?: the| a| any)? (?:sft|warm-? ?start|supervised fine-?tuning)\b",
        _fixed("sft.steps", 0),
    ),
    (r"(?:不要|不用|跳过|不做|无需|没有)\s*(?:sft|暖启动|热启动|预热|监督微调)", _fixed("sft.steps", 0)),
    (rf"\b(?:sft|warm-? ?start) steps?{IS}{N}", _number("sft.steps")),
    (rf"{N}\s*(?:steps? of )?(?:sft|warm-? ?start)(?: steps?)?\b", _number("sft.steps")),
    (rf"\blora(?: of)?(?: rank)?{IS}{N}", _lora),
    (
        r"(?:without|no|disable)\s*(?:wandb|w&b)|(?:wandb|w&b)(?: |=|:)(?:off|disabled)\b|(?:不用|不要|关闭"
        r"|禁用)\s*(?:wandb|w&b)",
        _fixed("tracking.wandb", "off"),
    ),
    (r"(?:wandb|w&b)(?: |=|:)?(?:offline|离线)|offline (?:wandb|w&b)", _fixed("tracking.wandb", "offline")),
    (rf"batch(?:es)?(?:[ _-]size)?(?: of)? {N}\s*(?:tasks|problems|prompts|questions)", _tasks_per_step),
    (rf"{N}\s*(?:tasks|problems|prompts|questions)\s*(?:per|a|each|every)\s*(?:step|batch)", _tasks_per_step),
    (rf"每步\s*{N}\s*(?:道题|个题|题|个任务|个问题|任务)", _tasks_per_step),
    (
        rf"\bgroups?(?:[ _-]?size)?s?{IS}(?:size\s*)?{N}(?:\s*(?:rollouts|samples|completions|each|个))?",
        _number("grpo.group_size"),
    ),
    (rf"{N}{PER_TASK}(?:task|group|problem|prompt|question)\b", _number("grpo.group_size")),
    (
        rf"(?:每个?组|组的?大小|分组大小){IS}{N}\s*(?:个|条|次)?\s*(?:rollouts?|样本|回答|采样)?",
        _number("grpo.group_size"),
    ),
    (rf"{N}\s*个?一组", _number("grpo.group_size")),
    (
        rf"每(?:道|个)?(?:题|任务|问题|提示)(?:采样|生成)?\s*{N}\s*(?:个|次|条)\s*(?:rollouts?|样本|回答"
        rf"|采样)?",
        _number("grpo.group_size"),
    ),
    (rf"\bbatch(?:es)?(?:[ _-]?size)?{IS}{N}(?:\s*rollouts)?", _number("grpo.batch_size")),
    (rf"{N}\s*rollouts\s*(?:per|a|each|every)\s*(?:step|batch)", _number("grpo.batch_size")),
    (rf"(?:批次大小|批量大小|批大小|批次|批量){IS}{N}", _number("grpo.batch_size")),
    (rf"每步\s*{N}\s*(?:个|条)\s*(?:rollouts?|样本|回答)", _number("grpo.batch_size")),
    (rf"(?:\b(?:lr|learning[ _-]?rate)|学习率(?:\s*lr)?){IS}{N}", _float("grpo.learning_rate")),
    (rf"{N}\s*(?:的\s*)?(?:as (?:the )?)?(?:lr\b|learning[ -]rate|学习率)", _float("grpo.learning_rate")),
    (rf"{ABOUT}(?<!every ){N}\s*(?:more |grpo |rl |training |optimi[sz]er )?steps?\b", _number("grpo.steps")),
    (rf"(?<!每)(?<!每隔)(?<!every ){ABOUT}{N}\s*步(?!一)", _number("grpo.steps")),
    (rf"(?:\b(?:steps?|number of steps)|步数|总步数){IS}{N}", _number("grpo.steps")),
    (rf"(?:\b(?:random )?seed|(?:随机)?种子数?){IS}(?:number )?{N}", _number("seed")),
    (rf"{TO}{{1,8}}{PERCENT}(?:\s*(?:的)?{ACCURACY})?", _accuracy),
    (rf"{PERCENT}\s*(?:的)?{ACCURACY}", _accuracy),
    (rf"{TO}{{0,8}}(?:\baccuracy|准确率|正确率|精度)\s*{TO}{{0,8}}{N}", _accuracy),
    (rf"{TO}{{0,8}}{N}\s*(?:validation |test )?accuracy\b", _accuracy),
    (rf"(?:\btemperature|温度){IS}{N}", _float("grpo.temperature")),
    (r"\b(?:without|no) kl\b(?: penalty)?", _fixed("grpo.kl_beta", 0.0)),
    (rf"\bkl(?:[ _-]?(?:beta|penalty|weight|coefficient))?{IS}{N}", _float("grpo.kl_beta")),
    (
        rf"{ABOUT}(?:no longer than |within |under |不超过|限时)?{N}\s*{TIME}(?:以?内)?",
        _seconds("budget.max_hours", 3600),
    ),
    (rf"{ABOUT}{N}\s*(?:new )?tokens\b(?: per (?:completion|answer))?", _number("grpo.max_new_tokens")),
    (rf"{ABOUT}{N}\s*turns\b(?: per rollout)?", _number("grpo.max_turns")),
    (
        rf"(?:evaluate(?:d)? |test(?:ed)? )?(?:on )?{N}\s*(?:test|evaluation) (?:problems|tasks|questions)",
        _number("evaluation.test_tasks"),
    ),
    (
        r"(?:\b(?:from|path|file|data)\s*=?|路径|文件)\s*((?:\.{0,2}/)?[\w./-]+\.jsonl?\b|\.{0,2}/[\w./-]+)",
        _path,
    ),
    (r"\b(?:base )?model(?: name)?\s*(?:=|:|named|called)\s*([^\s,;。]+)", _model),
    (r"模型(?:名称?)?\s*(?:=|:|为|是|用|设为)\s*([A-Za-z0-9.][\w./-]*)", _model),
    (
        r"(?<![\w./:-])([A-Za-z0-9][\w.-]*/(?![\w.-]*\.(?:jsonl?|csv|parquet|ya?ml|txt"
        r"|py)\b)[A-Za-z0-9][\w.-]*[\w])(?:\s*模型)?",
        _model,
    ),
    (r"\b(?:the )?tiny model\b|tiny\s*模型", _fixed("model.name", "tiny")),
    (
        r"\b(?:stop (?:on|at) (?:a )?plateau|early[ -]stop(?:ping)?|stop (?:it )?when it plateaus)\b|早停",
        _fixed("health.plateau_patience", 3),
    ),
    (r"\bprofile\s*[=:]?\s*([a-z][\w-]*)|\b([a-z]+-[a-z]+)(?: profile|\s*(?:配置档|profile))", _profile),
]
COMPILED = [(re.compile(pattern, re.IGNORECASE | re.ASCII), reader) for pattern, reader in PATTERNS]

HARMLESS = re.compile(
    r"下一步|第一步|进一步|同步|逐步|一步步|step by step|next steps?|first step", re.IGNORECASE
)
LEFT_OVER = re.compile(
    rf"[^,;。\n]{{0,12}}(?:(?<![A-Za-z])(?:lr|learning rate|steps?|groups?|batch(?:es)?|seeds?"
    rf"|temperature|epochs?|iterations?)(?![A-Za-z])"
    rf"|学习率|[\d几多]\s*步|步数|每组|种子|批次|批大小|温度|[\d几多]\s*轮)[^,;。\n]{{0,12}}|{N}",
    re.IGNORECASE | re.ASCII,
)
FAMILY = re.compile(
    r"(?<![\w/-])(?:qwen|llama|gemma|mistral|phi-?\d|smollm|olmo|gpt-?2|deepseek|pythia)[\w.-]*",
    re.IGNORECASE | re.ASCII,
)


def read_settings(text: str) -> tuple[Settings, str]:
    """Reads the settings out of a normalised request.

    Returns:
        The settings, and the request without them.
    """
    settings, rest = Settings(), to_digits(HARMLESS.sub(" ", text))
    for pattern, reader in COMPILED:

        def take(match: re.Match[str], reader: Reader = reader) -> str:
            reader(settings, match)
            return " "

        rest = pattern.sub(take, rest)
    return settings, rest


def unread(rest: str) -> list[Problem]:
    """What in `rest` speaks of a setting without being understood."""
    found = [Problem("unclear", match[0].strip()) for match in LEFT_OVER.finditer(rest)]
    return found + [Problem("model", match[0]) for match in FAMILY.finditer(rest)]
