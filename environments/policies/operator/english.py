"""Which act an English clause asks for: tables of phrases, and the two questions how it is meant.

An order needs its verb where an order has it: first, or after words such as "please" and "could you". So
"it is hard to train gsm8k" and "if I train it" are no orders, whatever else they say.
"""

from __future__ import annotations

import re

from environments.policies.operator.acts import Act, Reading


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


NEGATION = _compiled(
    r"\b(?:don'?t|do not|does ?n[o']t|doesn'?t|did not|didn'?t|never|not|no|without|won'?t|will not|can'?t|cannot|shouldn'?t|mustn'?t"
    r"|needn'?t|avoid|refrain|nothing|neither|nor|stop short|hold off|except|unless)\b"
)
HARMLESS = _compiled(
    r"\b(?:why not|why don'?t (?:we|you|i)|no problem|no matter|no hurry|no rush|no thanks|no need to (?:ask|wait|explain|confirm)|not only"
    r"|without (?:asking|confirm\w*|further|any further|delay|waiting|interruption|a gpu|gpu|key|network|questions)"
    r"|(?:don'?t|do not|never) (?:ask|wait|worry|hesitate|explain|bother|forget|care|mind|list|show|tell|describe|be|need|have to worry)"
    r"|(?:i )?(?:don'?t|do not) (?:care|mind|know))\b|^(?:no|not really|nope)[ ,]*$"
)
LATER = _compiled(
    r"\bnot (?:yet|now|right now|today)\b|\b(?:tomorrow|tonight|next week|next month|hold on|just kidding|only kidding|never ?mind|wait until"
    r"|later(?! steps)|in (?:an hour|a while|a bit|the (?:evening|morning)))\b|\bat \d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)"
)
CONDITION = _compiled(
    r"\b(?:if|when|whenever|once|as soon as|after|until|till|before|in case|provided)\b(?! (?:possible|you can|ready|needed|all|once))"
)
LEADS = _compiled(
    r"(?:please|pls|kindly|now|ok|okay|hi|hello|hey|so|and|also|just|first|firstly|second|next|finally|yes|yeah|sure|alright|well|great"
    r"|thanks|thank you|simply|quickly|immediately|right now|go ahead and|go and|go on and|go|let'?s|let us|help me(?: to)?|try to"
    r"|(?:i|we)(?:'d| would)? (?:really )?(?:like|want|need|wish)(?: you)? to|(?:i|we) (?:want|need) you to"
    r"|(?:can|could|would|will) you(?: please| kindly)?|(?:you|we) (?:should|must|may|can)(?: now)?|your (?:task|job|goal) is to"
    r"|do(?= (?:train|a |an |the |some ))|don'?t forget to|make sure (?:to|you)|be so kind (?:as to|and)"
    r"|(?:with|for|using|on|at|in|by)(?=\s+(?:train|fine-?tune|post-?train)\b)"
    r"|(?:on|using|with|in|for|use)(?: the| my)? [\w./-]+(?: environment| env| dataset)?(?=[\s,]+(?:to )?(?:train|fine-?tune|post-?train)\b)"
    r"|to(?=\s+train\b)(?<=, to)|[-*>\"'(]|\d\.)(?![\w-])[\s,:]*|[-*>\"'(]+\s*"
)
POLITE = _compiled(
    r"\b(?:please|pls|kindly|could you|would you|will you|for me|let'?s|i (?:want|need)|i'?d like|i would like|go ahead)\b"
)
CAN_YOU = _compiled(r"^(?:(?:hi|hello|hey|ok|so|and)[ ,]+)?can you\b")

_THING = r"(?: (?:the|a|an|another|new|some|my|this|that|our|quick|short|small|first|full|real|next|rl|rlvr|grpo|env|[\w.]*[\d_-][\w.-]*)){0,5}"
_NOUNS = (
    r"(?:\s+(?:split|set|data|tasks?|loss|curves?|accuracy|examples?|logs?|steps?|env(?:ironment)?s? list)\b)"
)
_TRAINING = r"(?:training|fine-?tuning|post-?training|grpo|reinforcement learning|rl)"

ORDERS: list[tuple[Act, re.Pattern[str]]] = [
    (act, _compiled("^" + pattern))
    for act, pattern in [
        (Act.HELP, r"(?:help|usage|commands)\b"),
        (Act.WATCH, r"(?:watch|monitor|follow|keep (?:an eye on|watching|going|monitoring|waiting)|continue|carry on|go on|wait\b(?! until)"
                    r"|resume (?:watching|monitoring)|(?:start|keep|begin) (?:watching|monitoring))"),
        (Act.STOP, r"(?:stop|abort|cancel|kill|halt|end|terminate|interrupt|quit|shut down)\b(?! (?:words?|condition|criterion|sign))"),
        (Act.TRAIN, rf"(?:train|re-?train|fine-?tune|post-?train|rl-?train)\b(?!{_NOUNS})"),
        (Act.TRAIN, rf"(?:start|restart|begin|launch|kick off|run|do|perform|carry out){_THING} {_TRAINING}\b(?!{_NOUNS})(?! (?:log|status|result|report))"),
        (Act.COMPARE, r"compare\b"),
        (Act.TEST, r"(?:test|smoke-?test|try out|check)\b.{0,40}\b(?:inference|model|checkpoint|policy)\b|(?:run|do) .{0,20}(?:inference|smoke)[ -]?(?:test)?\b"
                   r"|(?:smoke-?test|test)\b"),
        (Act.EDIT, r"(?:set|change|edit|adjust|raise|lower|increase|decrease|reduce|configure|put)\b"),
        (Act.SELECT, r"(?:select|choose|pick|use|switch to|take)\b"),
    ]
]  # fmt: skip
WEAK = _compiled(
    r"^(?:start|restart|begin|launch|run|learn|teach|kick off)\b|^(?:make|build|create|produce|give me|get me)\b.{0,80}\bmodel\b"
    r"|^(?:i|we)(?:'d| would)? (?:want|need|like)\b.{0,80}\bmodel\b"
)

PHRASES: list[tuple[Act, re.Pattern[str]]] = [
    (act, _compiled(pattern))
    for act, pattern in [
        (Act.HELP, r"\bwhat (?:can|do|could) you (?:do|help|offer)\b|\bwho are you\b|\bwhat are you\b|\bare you (?:a|an|chat|claude|gpt|real|human)"
                   r"|\bhow (?:do|can|should) i use (?:you|this|rl-cli|it)\b|^(?:hi|hello|hey|good (?:morning|evening|day))\b[\s!.]*$|\bhelp(?: me)?$"),
        (Act.HOW, r"\bhow (?:long|much|many)\b.* (?:does|would|do) (?:a |the )?(?:it take to train|training|you (?:need|take) to train)"),
        (Act.ENVIRONMENTS, r"\b(?:environments|envs)\b|\bwhat (?:can|could) (?:i|you|we|be) (?:train|learn)|\b(?:which|what) (?:environment|env|task|dataset)s?\b"
                           r".*\b(?:train|are there|available|exist|have|do you|can|should)\b|\bwhat (?:is|'s) (?:available|there to train|trainable)"),
        (Act.COMPARE, r"\bcompar\w+|\bversus\b|\bvs\b|\bwhich (?:run|one|of (?:the|my|them)|model|training).{0,40}\b(?:better|best|higher|won|wins)\b|\bdifference between\b.*\bruns?\b"),
        (Act.RUNS, r"\b(?:list|show|display|see|what|which|all|my|any|how many)\b.*\b(?:runs|trainings|training history)\b|^(?:runs|history|past runs|recent runs|training history)$"),
        (Act.RESULTS, r"\b(?:results?|outcome|outcomes|scores?|report|final accuracy|how (?:did|has) (?:it|that|the|my)\b.*\b(?:go|gone|do|done|perform|performed|end|turn out)"
                      r"|how (?:good|well|accurate) (?:is|did|was|does)|what accuracy|which accuracy|how accurate|did (?:it|that|the run) (?:work|learn|help|succeed|improve)|what did (?:it|the run|training) (?:reach|learn|achieve|gain))\b|^accuracy\b"),
        (Act.STATUS, r"\b(?:status|progress|how (?:is|are|'s) (?:it|things|everything|the (?:run|training|job)|my (?:run|training|job)|training|that|we)\b|how's (?:it|the|training|my|everything)"
                     r"|is (?:it|the (?:run|training|job)|training|my run) (?:still |already |all )?(?:done|finished|running|over|ready|complete|going|working|training|alive|ok|stuck|improving)"
                     r"|(?:has|did) (?:it|the (?:run|training)) (?:finish|end|complete|start|fail|crash|stop)\w*|eta|how (?:long|far|much longer)|when (?:will|is|does) (?:it|the (?:run|training))"
                     r"|still running|what(?: is|'s) (?:it|the run|the training|happening|going on|running)|any (?:news|update)|update me|(?:show|see) (?:me )?(?:the |my )?(?:last|latest|current|newest)? ?run\b"
                     r"|why did (?:it|the run|training) (?:stop|fail|end|crash)|should i stop|where (?:is|are) (?:it|we|the run))"),
        (Act.CONFIG, r"\b(?:config|configuration|settings|hyper-?parameters|learning rate|batch size|group size)\b"),
        (Act.HOW, r"\b(?:how|what|why|when|explain|describe|tell me|should|shall|is|are|does|do|did|can|could|would|may|might|if|whether|wonder\w*|teach me|learn about|about)\b"
                  r".*\b(?:train|training|trained|trains|fine-?tun\w+|post-?training|grpo|reinforcement learning|rl)\b"),
        (Act.DESCRIBE, r"^(?:(?:can|could|would|will) you |please |and )*(?:describe|explain|tell me (?:more )?about|show(?: me)?|inspect|look at|details (?:of|on|about|for)|info(?:rmation)? (?:on|about|for)"
                       r"|more about|learn about|what(?: is|'s| are| does| do)|which|introduce|display|open)\b|\babout\b.*\benvironment\b|\bhow (?:does|do|is|are)\b"),
        (Act.LIST, r"^(?:list|show|display)\b"),
        (Act.TRAIN_MENTION, r"\b(?:train|training|trained|fine-?tun\w+|post-?train\w*)\b"),
    ]
]  # fmt: skip
ASKING = _compiled(
    r"^(?:how|what|why|when|where|which|who|whose|whether|if|should|shall|is|are|was|were|does|did|has|have|had|may|might|must|am|can (?!you\b)|could (?!you\b))"
)


def read(clause: str, asks: bool, has_settings: bool) -> Reading:
    """The act that `clause` asks for; `asks` if its sentence ends with a question mark."""
    text = clause.strip(" \"'.,:")
    core = text
    while (lead := LEADS.match(core)) and lead.end():
        core = core[lead.end() :]
    negated = NEGATION.search(HARMLESS.sub(" ", text)) is not None
    order = next((act for act, pattern in ORDERS if pattern.search(core)), None)
    if negated and order is None:
        return Reading(_mentioned(text), negated=True, text=text)
    if negated and NEGATION.match(core):
        return Reading(_mentioned(text), negated=True, text=text)
    if order is None and WEAK.search(core) and not ASKING.match(text):
        order = _phrase(core, (Act.RESULTS, Act.RUNS, Act.ENVIRONMENTS, Act.STATUS)) or Act.MAYBE_TRAIN
    if order in (Act.TEST, Act.SELECT, Act.EDIT, None):
        # "use" and "check" begin many things; a clear phrase decides before them.
        clear = (Act.STATUS, Act.RESULTS, Act.RUNS, Act.ENVIRONMENTS) if order else None
        order = _phrase(text, clear) or order
    told = POLITE.search(text) or (CAN_YOU.search(text) and (has_settings or order is Act.STOP))
    return Reading(
        order,
        text=text,
        question=asks and not told,
        restricted=negated,
        conditional=CONDITION.search(core) is not None,
    )


def _mentioned(text: str) -> Act | None:
    """What a clause with a negation speaks of."""
    if re.search(r"\b(?:stop|abort|cancel|kill|end|interrupt)\b", text, re.IGNORECASE):
        return Act.STOP
    if re.search(r"\b(?:train|training|start|starting|begin|launch|run|fine-?tune)\b", text, re.IGNORECASE):
        return Act.TRAIN
    return None


def _phrase(text: str, among: tuple[Act, ...] | None = None) -> Act | None:
    return next(
        (act for act, pattern in PHRASES if (among is None or act in among) and pattern.search(text)), None
    )
