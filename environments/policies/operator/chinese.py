"""Which act a Chinese clause asks for. The verb that stands first decides; what precedes it may take it back."""

from __future__ import annotations

import re

from environments.policies.operator.acts import Act, Reading

NEGATION = re.compile(
    r"不要|不用|不想|不必|不需要|不能|不该|不应该|不可以|不准|不许|不得|先不|暂不|暂时不|不再|不打算|不训练|不跑|请勿|切勿|禁止|无需|没必要|拒绝|不是"
    r"|(?<![特分级类区识辨个])别(?!的|人)|(?:do not|don'?t|never|without)\b",
    re.IGNORECASE,
)
HARMLESS = re.compile(
    r"(?:不要|不用|不必|无需|不需要|别)(?:再)?(?:问|等|担心|确认|解释|询问|管|忘|客气|怕|犹豫)|能不能|可不可以|要不要|该不该|是不是|不客气|没问题|没关系"
)
LATER = re.compile(
    r"先别|先不|暂时不|暂不|还不要|稍后|明天|今晚|以后再|等一下再|等会|过一会|晚点|晚些|开玩笑|下周|下次再"
)
CONDITION = re.compile(r"如果|假如|要是|倘若|当.{0,20}时|的时候|之后|以后|直到|一旦|除非|就停|再停|时停|才停")
WHETHER = re.compile(
    r"怎么|怎样|如何|什么|为什么|为何|为啥|哪|多少|多久|多长|几(?=步|个|次)|是否|会不会|要不要|该不该|如果|假如|要是|有没有|值得|应该.*吗|很难|太难|很慢|太慢|失败|出错|报错|卡住|崩溃"
)
ASKS = re.compile(r"能不能|可不可以|是不是|吗|呢")
POLITE = re.compile(r"帮我|帮忙|请(?!问)|麻烦|给我|替我|让我们")

_NO_NOUN = r"(?!了|过|完|时|中(?!文)|的|结果|进度|进展|状态|情况|集|数据|日志|曲线|效果|记录|报告|历史|列表|任务|正在|还在|卡|失败|崩|停|怎么|如何|到哪|得|指标|流程|原理)"
_WHICH = r"(?<!上次)(?<!这次)(?<!本次)(?<!当前)(?<!最近)(?<!之前)(?<!刚才)(?<!正在)(?<!一次)(?<!两次)(?<!次的)(?<!还在)"
ACTS: list[tuple[Act, re.Pattern[str]]] = [
    (act, re.compile(pattern, re.IGNORECASE))
    for act, pattern in [
        (Act.STATUS, r"状态|正在(?:跑|训练|运行)|卡住|崩溃了|进展|进度|怎么样了|怎样了|如何了|到哪|(?:还|训练|跑)(?:还)?(?:要|有|需要)(?:跑|训练)?多久|跑完|第几步|还在(?:跑|训练|运行)|(?:完成|结束|好|停|崩)了(?:吗|没)"
                     r"|训练(?:完|好)了?(?:吗|没|了没)|情况(?:如何|怎么样)?|(?:训练|运行|跑)(?:得|的)?(?:怎么样|怎样|如何)了?$"),
        (Act.WATCH, r"盯着|盯|监控|监视|观察|跟踪|继续(?:看|监控|观察|等|跟|盯|跑|训练)?|等它|等待|一直看"),
        (Act.STOP, r"停止|停掉|停下|停一下|叫停|停|终止|中止|中断|取消|结束(?=.{0,8}(?:训练|运行|任务|$))|别再?跑了|(?:不要|别)再(?:训练|跑|继续)|关掉(?=.{0,8}(?:训练|运行))|杀掉"),
        (Act.COMPARE, r"比较(?!好|快|大|小|难|慢|长|短)|对比|哪(?:个|次|一个|一次).{0,8}(?:更|最)?好|谁更好"),
        (Act.RUNS, r"(?:列出|查看|显示|看看|看一下|有哪些|所有|全部|哪些|列一下).{0,6}(?:运行|训练记录|训练历史|训练任务|训练列表|历史|训练$)|运行列表|运行记录|训练(?:记录|历史|列表)|历史记录|跑过(?:哪些|什么)"
                   r"|(?:运行|训练记录|训练任务).{0,3}有哪些"),
        (Act.ENVIRONMENTS, r"环境.{0,4}(?:有哪些|列表|清单)|(?:哪些|什么|所有|全部|列出|列一下|显示|查看|看看|看一下|可用|有啥).{0,6}环境|(?:能|可以|会)(?:够)?训练(?:什么|哪些|啥|哪个)|训练(?:什么|哪个)(?:环境)?好?"),
        (Act.CONFIG, r"(?:查看|显示|看看|看一下|当前|现在|目前).{0,4}(?:配置|设置|参数)|^(?:配置|参数|设置)$|(?:学习率|种子|批大小|每组).{0,3}(?:是)?(?:多少|几)"),
        (Act.RESULTS, r"结果|成绩|报告|(?:效果|准确率|正确率|精度|表现).{0,6}(?:如何|怎么样|怎样|多少|多高|几)|训练得(?:怎么样|如何)|学得(?:怎么样|如何)|^(?:准确率|效果)$"),
        (Act.HELP, r"帮助|你(?:都|还)?(?:能|会|可以)(?:帮我|为我)?(?:做|干)(?:什么|啥|哪些|些什么)|你是(?:谁|什么|语言模型|大模型|不是|人|ai|claude|gpt|chatgpt)|(?:怎么|如何)(?:使)?用(?:你|它|这个|rl-cli)|用法|使用说明|^(?:你好|您好|嗨|在吗)"),
        (Act.HOW, r"(?:怎么|怎样|如何|为什么|为啥|什么是|什么叫|解释|说明|介绍|讲讲|讲解|讲一下|聊聊|了解|应该|该不该|要不要|如果|假如|是否|会不会|关于).{0,16}(?:训练|微调|强化学习|grpo)"
                  r"|(?:训练|微调|强化学习|grpo).{0,6}(?:是什么|是啥|怎么|原理|流程|意思)"),
        (Act.DESCRIBE, r"介绍|描述|解释|说说|讲讲|说明|详情|详细|是什么|是啥|什么是|了解|看看|看一下|查看|显示"),
        (Act.TEST, r"测试(?!集|题)|测一下|测一测|试一下推理|冒烟|推理测试"),
        (Act.TRAIN, rf"{_WHICH}(?:训练|微调|后训练|练一[个下]|(?<![a-z])train(?![a-z])){_NO_NOUN}|(?:开始|启动|进行|来一次|跑|做).{{0,24}}(?:训练|微调){_NO_NOUN}"),
        (Act.EDIT, r"设(?:为|成|置)|改(?:为|成)|调(?:到|成|整|为)|修改|把.{0,12}(?:设|改|调)"),
        (Act.MAYBE_TRAIN, r"跑|启动|开始|运行|(?:做|要|来|给我|造)一?个.*模型|学习(?!率)"),
        (Act.SELECT, r"选择|选用|选|切换到|使用|^用"),
        (Act.LIST, r"列出|列一下"),
        (Act.TRAIN_MENTION, r"训练|微调|强化学习"),
    ]
]  # fmt: skip


def read(clause: str, asks: bool, has_settings: bool) -> Reading:
    """The act that `clause` asks for; `asks` if its sentence ends with a question mark or particle."""
    text = clause.strip(" \"'.,:")
    plain = HARMLESS.sub(lambda match: "　" * len(match[0]), text)
    negation = NEGATION.search(plain)
    found = [
        (match.start(), order, act)
        for order, (act, pattern) in enumerate(ACTS)
        if (match := pattern.search(plain))
    ]
    if train := [entry for entry in found if entry[2] is Act.TRAIN]:
        found = [entry for entry in found if entry[2] not in (Act.EDIT, Act.MAYBE_TRAIN, Act.SELECT)] or train
    if any(kind in (Act.STATUS, Act.RESULTS, Act.RUNS, Act.ENVIRONMENTS, Act.CONFIG) for _, _, kind in found):
        found = [entry for entry in found if entry[2] is not Act.DESCRIBE]
    found = [entry for entry in found if entry[2] is not Act.TRAIN_MENTION] or found
    start, _, act = min(found, default=(len(text), 0, None))
    if negation and negation.start() < start:
        return Reading(
            act if act in (Act.STOP, Act.TRAIN) else Act.TRAIN if _trains(act) else None,
            text=text,
            negated=True,
        )
    if act in (Act.TRAIN, Act.MAYBE_TRAIN) and WHETHER.search(text):
        act = Act.HOW
    question = (asks or ASKS.search(text) is not None) and not POLITE.search(text)
    return Reading(
        act,
        text=text,
        question=question,
        restricted=negation is not None and act is not Act.STOP,
        conditional=CONDITION.search(text) is not None,
    )


def _trains(act: Act | None) -> bool:
    return act in (Act.MAYBE_TRAIN, Act.TRAIN_MENTION)
