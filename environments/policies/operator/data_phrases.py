"""How people speak of training data and of the batches that make it, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from environments.policies.operator.acts import one_of


def _compiled(phrases: str) -> re.Pattern[str]:
    return re.compile(one_of(phrases), re.IGNORECASE | re.ASCII)


def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(phrase, re.IGNORECASE | re.ASCII)


_ROWS = r"(?:samples?|trajector(?:y|ies)|rows?|examples?|conversations?|training data|data ?sets?|data)"
_ROWS_ZH = "(?:样本|轨迹|训练数据|微调数据|对话数据|数据|批次)"
_WORDS = r"(?:[\w,.-]+ ){0,6}?"

SIZES = _compiled(r"\b(?:batch|group)[ _-]?sizes?\b|\b(?:grpo|sft)\.\w+|批次?大小|批量大小")
"""Of training, which has batches too."""
SUBJECT = _compiled(r"""
    \bbatch(?:es)?\b|\bsft\b|\btrajector(?:y|ies)\b|\btraining data\b|\bdata generation\b
    \bgenerating\b.{0,20}\b(?:samples|data)\b
    \b(?:\d[\d,.]*k?|some|more|how many) (?:\w+ )?samples?\b
    \b(?:compress|export|merge)\b(?:,? (?:and|then) \w+)* (?:it|them|that|this|these|those|everything)\b
    \bexport [\w.-]+(?<!model)(?<!checkpoint)(?<!weights) (?:as|to|for) (?:trl|sharegpt|parquet|atif|hf)\b
    导出\s*[\w.-]+\s*(?:为|成)\s*(?:trl|sharegpt|parquet|atif|hf)\b
    (?:压缩|导出|合并)(?:并|和|后|再|,|\s|压缩|导出)*(?:它们?|为|成|一下|吧|$)
    批次|这批|那批|该批|批处理|样本|轨迹|训练数据|微调数据|数据生成|生成.{0,12}数据
""")
"""What makes a request one about training data."""
TRAINS = _compiled(r"""
    ^(?:please |now )?(?:train|fine-?tune)\b|\b(?:then|and|to) (?:train|fine-?tune)\b
    训练(?!数据|样本|集)|微调(?!数据|样本)
""")
_TYPES = "jsonl|ndjson|json|csv|tsv|parquet"
FILE = re.compile(
    rf"(?<!\w)([\"'])(?P<quoted>[^\"'\n]+\.(?:{_TYPES}))\1|(?<![\w/.~-])[~\w./-]*[\w-]\.(?:{_TYPES})\b(?![\"'])",
    re.ASCII | re.IGNORECASE,
)
"""A name with blanks or letters of other languages in quotes."""
DATASET = re.compile(
    r"(?:\b(?:from|of|through|data ?set)\b(?: the)?(?: data ?set)?|从|数据集)\s*"
    r"([A-Za-z0-9][\w.-]*/[\w.-]*\w(?::[\w-]+){0,2})(?![\w/.-])",
    re.ASCII | re.IGNORECASE,
)
"""Of the Hugging Face hub."""
_SAYS_MODEL = r"\b(?:the )?model(?: is)?:?|模型(?:是|为|:)?"
MODEL = re.compile(
    rf"(?:(?:{_SAYS_MODEL})\s*)?(?<![\w./-])((?:openai|anthropic|openrouter|ollama|scripted)/[\w.:/-]*\w)"
    rf"|(?:\b(?:with|using|by)\b(?: the)?(?: model)?|{_SAYS_MODEL}|用)\s*([A-Za-z0-9][\w-]*/[\w.:/-]*\w)",
    re.ASCII | re.IGNORECASE,
)
"""Of a provider, or, where it is said to be one, of an endpoint of the settings."""

MAKE = _compiled(rf"""
    \b(?:make|generate|create|produce|collect|synthesi[sz]e)\b(?: me| us)? {_WORDS}{_ROWS}\b
    (?:生成|制作|采样|产生|造|做|合成|收集)[^,。]{{0,24}}?{_ROWS_ZH}
""")
WANT = _compiled(rf"""
    \b(?:want|need|give|get|fetch|like)\b(?: me| us)? {_WORDS}{_ROWS}\b
    (?:想要|需要|我要|给我)[^,。]{{0,24}}?{_ROWS_ZH}
""")
"""Where a file is named, it is to make them."""
PRICE = _compiled(r"""
    \bhow (?:much|expensive)\b.*\b(?:will|would|is it to|does it cost to)\b|\bwhat (?:will|would)\b.*\bcost\b
    (?:要|会|得|需要)(?:花|用)?(?:费)?多少钱?
""")
"""Of what is not made yet."""
SEVERAL = _compiled(r"\bbatches\b|(?:所有|全部|每个|这些|那些)批次")
ACTS: list[tuple[str, re.Pattern[str]]] = [
    ("make", MAKE),
    ("go_on", _compiled(r"\b(?:resume|continue|go on with)\b|继续|恢复|接着做")),
    (
        "stop",
        _compiled(r"\b(?:stop|pause|abort|cancel|halt|end|kill|terminate|interrupt)\b|停|终止|中止|取消"),
    ),
    ("compress", _compiled(r"\b(?:compress|shorten|compact)\b|压缩")),
    ("export", _compiled(r"\bexport\b|导出|输出[成为]")),
    ("merge", _compiled(r"\bmerge\b|合并")),
    (
        "show",
        _compiled(rf"""
        \b(?:show|see|read|display|look at|print|view)\b {_WORDS}{_ROWS}\b
        \b(?:show|display|print|view)\b(?: me)? (?:them|it)\b(?: to me)?
        (?:看|显示|查看|展示)[^,。]{{0,12}}?{_ROWS_ZH}
        """),
    ),
    ("stats", _compiled(r"\b(?:stats|statistics|figures)\b|\bhow many\b|\bcosts?\b|统计|有多少|花了多少")),
    (
        "list",
        _compiled(r"""
        \b(?:list|show|which|what|see)\b(?: \w+){0,4} batches\b
        (?:哪些|列出|查看|显示|看看).{0,6}批次(?!\s*的)|批次列表
        """),
    ),
    ("watch", _compiled(r"\b(?:watch|follow|monitor|wait for)\b|盯|等待|等它|观察|监控")),
    (
        "status",
        _compiled(r"""
        \bhow (?:is|are|far)\b|\bhow's\b|\bstatus\b|\bprogress\b
        \bwhy\b|\bwhen (?:will|is|does)\b|为什么|为何
        \bis .{0,30}\b(?:done|ready|finished|running|over)\b
        怎么样|怎样了|如何了|进度|进展|状态|情况|到哪|(?:完成|好|做完|跑完)了(?:吗|没)
        """),
    ),
]
"""What can be asked for, and how."""

SAID_OF = {
    "make": _compiled(r"\bsome\b|一些|一批"),
    "go_on": _compiled(r"\b(?:stopped|failed|killed|crashed|interrupted)\b|(?:停止|停掉|中断|失败)的"),
}
"""What may be said beside such an act, and changes nothing."""
WHICH = _compiled(
    r"\b(?:current|running|last|latest|newest)(?= (?:batch|job|data generation)\b)"
    r"|(?:上次|最近|最新|当前|目前|正在运行)的?(?=批次|这批|批)"
)
"""Of the batch that is meant where none is named."""

EACH = re.compile(
    r"(?<![\w.,-])(\d{1,5}) (?:samples?|answers?|times?) (?:per|for each|for every|each)\b"
    r"(?: (?:prompt|item|row)\b)?"
    r"|每(?:个|条)(?:提示词?|问题|题目?)?\s*(?:生成|采样)?\s*(\d{1,5})\s*(?:个|条|次)",
    re.IGNORECASE | re.ASCII,
)
_DECIMAL = r"(-?\d{1,6}(?:\.\d{1,6})?)(?![\w%]|\.\d)"
_IS = r"\s*(?:of|is|=|:|为|是|设为|设置为)?\s*"
_ENV = r"([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)"
_TERMINAL = r"\b(?:with|using|by) (?:the |a )?terminal agent\b|(?:用|使用)?终端(?:智能体|代理)"
_BEST_OF = r"\bbest[ -]of[ -](\d{1,5})\b(?![.,]\d)|(?<![\w.])(\d{1,5})\s*选\s*[1一](?:个|条)?"
_LEAST = rf"\b(?:with )?(?:a )?(?:min(?:imum)?\.? score{_IS}|score (?:of )?at least ){_DECIMAL}"
_LEAST_ZH = rf"最低(?:得分|分数|分){_IS}{_DECIMAL}|(?:得分|分数)(?:至少|不低于){_IS}{_DECIMAL}"
_TEMPERATURE = rf"\b(?:at |with )?(?:a |the )?temperature{_IS}{_DECIMAL}|温度{_IS}{_DECIMAL}"
_SCORED = rf"\b(?:and )?(?:scored|judged|graded) (?:by|with) (?:the )?{_ENV}(?: environment)?\b"
_SCORED_ZH = rf"(?:用|由|以)\s*{_ENV}\s*(?:环境)?(?:打分|评分)"
SETTINGS: list[tuple[str, Callable[[str], Any], re.Pattern[str]]] = [
    ("agent", lambda said: "terminal", _pattern(_TERMINAL)),
    ("best_of", int, _pattern(_BEST_OF)),
    ("min_score", float, _pattern(f"{_LEAST}|{_LEAST_ZH}")),
    ("temperature", float, _pattern(_TEMPERATURE)),
    ("score", str, _pattern(f"{_SCORED}|{_SCORED_ZH}")),
]
"""Of a batch: what says them, and what is said."""
_NUMBER = r"\d{1,3}(?:,\d{3})+|\d{1,9}"
COUNT = re.compile(
    rf"(?<![\w.,-])({_NUMBER})\s*(k)?(?=\s+(?:[a-z-]+ ){{0,3}}?{_ROWS}\b)"
    rf"|(?<![\w.,-])({_NUMBER})\s*(千|万)?\s*(?:条|个|份|行)",
    re.IGNORECASE | re.ASCII,
)
TOKENS = re.compile(rf"(?<![\w.,-])({_NUMBER})\s*(k)?\s*(?:tokens?\b|个?词元)", re.IGNORECASE | re.ASCII)
FIRST = re.compile(
    rf"\b(?:sample|row|example)s? (?:number |no\.? )?({_NUMBER})\b(?! *%)|第\s*({_NUMBER})\s*(?:条|个|行)",
    re.IGNORECASE | re.ASCII,
)
TIMES = {"k": 1_000, "千": 1_000, "万": 10_000}

NO_TOOLS = _compiled(
    r"\bwithout (?:any )?tools\b|\bwith no tools\b|(?:不用|不带|不使用|没有|不要)(?:任何)?工具"
)
TOOLS = re.compile(
    r"\b(?:(?:with|using) (?:only )?(?:and )?(?:the )?|and the )"
    r"((?:[a-z_]+(?:, | and )){0,4}[a-z_]+) (?:tools?|toolsets?)\b"
    r"|(?:用|使用|带)\s*([a-z_]+(?:\s*(?:,|、|和|与)\s*[a-z_]+){0,4})\s*的?工具集?",
    re.IGNORECASE,
)
TOOLS_ZH = {
    "研究": "research",
    "科学": "science",
    "开发": "development",
    "网络": "web",
    "数学": "math",
    "终端": "terminal",
    "文件": "files",
    "浏览器": "browser",
}
KIND_ZH = re.compile(rf"(?:用|使用|带)?({'|'.join(TOOLS_ZH)})类?的?工具集?")

FORMATS = {"hugging face": "hf", "huggingface": "hf"}
FORMAT = re.compile(
    r"(?<![\w./-])(trl|sharegpt|parquet|atif|hugging ?face|hf)(?![\w/-]|\.\w)", re.IGNORECASE | re.ASCII
)
NAMED = re.compile(
    r"\b(?:batch(?: called| named)?|called|named|(?:name|call) it)\s+"
    r"([\"']?)([a-z0-9][\w.-]{0,99})\1(?![\w/])"
    r"|(?:批次|名为|叫做?|命名为)\s*([\"']?)([a-z0-9][\w.-]{0,99})\3"
    r"|(?<![\w./-])([\"']?)([a-z0-9][\w.-]{0,99})\5(?=\s*(?:批次|这批|那批))"
    r"|(?:\bexport |导出\s*|把\s*)([\"']?)([a-z0-9][\w.-]{0,99})\7"
    r"(?=(?: (?:as|to|for) |\s*(?:为|成|导出为|导出成)\s*)(?:trl|sharegpt|parquet|atif|hf)\b)",
    re.IGNORECASE | re.ASCII,
)
OF_NAME = re.compile(
    r"\b(?:samples?|rows?|trajector(?:y|ies)|conversations?) of ([a-z0-9][\w.-]{0,99})(?=[?.!]?\Z)",
    re.IGNORECASE | re.ASCII,
)
"""Where no file is named."""
NO_NAMES = _compiled(r"""
    (?:is|are|was|has|had|have|did|does|will|would|could|should|may|still|yet|over|early|ready|healthy)\Z
    (?:if|when|once|unless|until|after|before|but|not|because|by|while|which|at|without|using|via)\Z
    (?:going|doing|done|finish|finished|fail|failed|fails|crash|crashed|die|died|stopped|stall|stalled|hang)\Z
    (?:model|checkpoint|weights|adapter|policy)s?\Z
    (?:go|come|status|progress|statistics|stats|complete|called|named|merge|show|cost|size|sizes|run)\Z
""")
"""What stands behind "batch" and names none, besides words that change nothing."""
NOW = _compiled(r"\b(?:now|at once|immediately|right away)\b|立即|立刻|马上")
COMPRESSED = _compiled(r"\bcompressed\b|压缩(?:后|过|好)")
DISCARDED = _compiled(r"\bdiscarded\b|\bthrown away\b|丢弃|舍弃")
NO_DUPLICATES = _compiled(r"""
    \b(?:without|remov(?:e|ing)|no|drop(?:ping)?) (?:the |any |all )?duplicates?\b
    \bde-?dup\w*\b(?: (?:it|them))?
    去重|去除重复|去掉重复
""")
NO_PERSONAL_DATA = _compiled(r"""
    \b(?:without|remov(?:e|ing)|no|mask(?:ing)?|redact(?:ing)?) (?:the |any )?personal (?:data|information)\b
    \b(?:without|remov(?:e|ing)|no|mask(?:ing)?|redact(?:ing)?) (?:the |any |all )?pii\b
    (?:去除|去掉|屏蔽|遮盖|隐去|删去|脱敏)(?:个人|隐私)(?:信息|数据)?
""")
THEN_ZH = re.compile(r"(^|[,。;\s])(?:之后|以后)")
"""Which is "then" where a clause begins with it."""
ASKS = re.compile(r"\?\s*$|[吗呢么]\s*[。?]*\s*$")
