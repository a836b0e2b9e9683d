"""English phrases, as patterns: by what they ask for, and how they change what is asked for."""

from __future__ import annotations

import re

from environments.policies.operator.acts import Act, one_of


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def _words(phrases: str) -> re.Pattern[str]:
    return _compiled(rf"\b(?:{one_of(phrases)})\b")


NEGATION = _words("""
    don'?t|do not|does ?not|doesn'?t|did not|didn'?t|never|not|no|without|won'?t|will not|can'?t|cannot
    shouldn'?t
    mustn'?t|needn'?t|avoid|refrain|nothing|neither|nor|stop short|hold off|except|unless
""")
HARMLESS = _words(r"""
    why not|why don'?t (?:we|you|i)|no (?:problem|matter|hurry|rush|thanks)|not only
    no need to (?:ask|wait|explain|confirm)|(?:don'?t|do not) know
    without (?:asking|confirm\w*|further|any further|delay|waiting|interruption|a gpu|gpu|key|questions)
    (?:don'?t|do not|never) (?:ask|wait|worry|hesitate|explain|bother|forget|care|mind|be|need)
    (?:don'?t|do not|never) (?:list|show|tell|describe)
    ^(?:no|not really|nope)$
""")
"""Negations that take nothing back."""
LATER = _compiled(
    one_of(r"""
    \bnot (?:yet|now|right now|today)\b
    \b(?:tomorrow|tonight|next week|next month|wait until|later(?! steps))\b
    \b(?:hold on|just kidding|only kidding|never ?mind)\b|\bat \d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)
    \bin (?:an hour|a while|a bit|the (?:evening|morning))\b
    """)
)
CONDITION = _compiled(
    r"\b(?:if|when|whenever|once|as soon as|after|until|till|before|in case|provided)\b"
    r"(?! (?:possible|you can|ready|needed|all|once))"
)
_TRAIN_VERB = r"(?:train|fine-?tune|post-?train)\b"
_LEADS = one_of(rf"""
    please|pls|kindly|now|ok|okay|hi|hello|hey|so|and|also|just|first|firstly|second|next|finally|yes|yeah
    sure|alright
    well|great|thanks|thank you|simply|quickly|immediately|right now|go ahead and|go and|go on and|go(?! on\b)
    let'?s|let us|help me(?: to)?|try to|don'?t forget to|make sure (?:to|you)|be so kind (?:as to|and)
    (?:i|we)(?:'d| would)? (?:really )?(?:like|want|need|wish)(?: you)? to|why don'?t you
    (?:can|could|would|will) you(?: please| kindly)?|(?:you|we) (?:should|must|may|can)(?: now)?
    your (?:task|job|goal) is to|do(?= (?:train|a |an |the |some ))|[-*>"'(]|\d\.
    (?:with|for|using|on|at|in|by)(?=\s+{_TRAIN_VERB})
    (?:on|using|with|in|for|use)(?: the| my)? [\w./-]+(?: environment| env| dataset)?(?=[\s,]+{_TRAIN_VERB})
""")
LEADS = _compiled(rf"(?:{_LEADS})(?![\w-])[\s,:]*|[-*>\"'(]+\s*")
"""What may stand before the verb of an order."""
POLITE = _words("""
    please|pls|kindly|could you|would you|will you|for me|let'?s|i (?:want|need)|i'?d like|i would like
    go ahead
""")
CAN_YOU = _compiled(r"^(?:(?:hi|hello|hey|ok|so|and)[ ,]+)?can you\b")
ASKING = _words("""
    ^(?:how|what|why|when|where|which|who|whose|whether|if|should|shall|is|are|was|were|does|did|has|have|had)
    ^(?:may|might|must|am)|^(?:can|could) (?!you)
""")

_ARTICLE = (
    r"the|a|an|another|new|some|my|this|that|our|quick|short|small|first|full|real|next|rl|rlvr|grpo|env"
)
_THING = rf"(?: (?:{_ARTICLE}|[\w.]*[\d_-][\w.-]*)){{0,5}}"
_TRAINING = r"(?:training|fine-?tuning|post-?training|grpo|reinforcement learning|rl)"
_NOUN = (
    r"(?!\s+(?:split|set|data|tasks?|loss|curves?|accuracy|examples?|logs?|status|results?|report|steps?)\b)"
)
_GO_ON = r"(?:continue|carry on|go on|pick up|proceed)"
_ENDED = r"(?:stopped|failed|lost|crashed|interrupted|ended|killed)"
ORDERS: list[tuple[Act, re.Pattern[str]]] = [
    (act, _compiled(f"^(?:{one_of(phrases)})"))
    for act, phrases in [
        (Act.HELP, r"(?:help|usage|commands)\b"),
        (
            Act.FORBIDDEN,
            r"(?:delete|remove|erase|wipe|purge|clear|discard|throw away|rm|clean(?: up)?|prune|archive"
            r"|rename|upload|deploy|publish)\b",
        ),
        (
            Act.RESUME,
            rf"""
            resume\b(?! (?:watching|monitoring|(?:the |my |this |our )?(?:chat|conversation|session)s?\b))
            {_GO_ON}\b.{{0,60}}\b(?:checkpoint|where (?:it|we) (?:stopped|left off|ended|was))
            {_GO_ON}(?: with)?(?: the| my| that)? (?:last|latest|{_ENDED}) (?:run|training)
            """,
        ),
        (
            Act.WATCH,
            r"""
            watch|monitor|follow|continue|carry on|go on|wait\b(?! until)|resume (?:watching|monitoring)
            keep (?:an eye on|watching|going|monitoring|waiting)|(?:start|begin) (?:watching|monitoring)
            """,
        ),
        (
            Act.STOP,
            r"(?:stop|abort|cancel|kill|halt|end|terminate|interrupt|quit|shut down)\b(?! (?:words?|sign))",
        ),
        (
            Act.TRAIN,
            rf"""
            (?:train|re-?train|fine-?tune|post-?train|rl-?train)\b{_NOUN}
            (?:start|restart|begin|launch|kick off|run|do|perform){_THING} {_TRAINING}\b{_NOUN}
            """,
        ),
        (Act.COMPARE, r"compare\b"),
        (
            Act.TEST,
            r"""
            (?:try out|check)\b.{0,40}\b(?:inference|model|checkpoint|policy)\b
            (?:run|do) .{0,20}(?:inference|smoke)[ -]?(?:test)?\b|(?:smoke-?)?test\b
            """,
        ),
        (Act.EDIT, r"(?:set|change|edit|adjust|raise|lower|increase|decrease|reduce|configure|put)\b"),
        (Act.SELECT, r"(?:select|choose|pick|use|switch to|take)\b"),
    ]
]
"""Verbs of orders; they count only where an order has its verb."""
WEAK = _compiled(
    one_of(r"""
    ^(?:start|restart|begin|launch|run|rerun|re-run|repeat|learn|teach|kick off)\b
    ^(?:make|build|create|produce|give me|get me)\b.{0,80}\bmodel\b
    ^(?:i|we)(?:'d| would)? (?:want|need|like)\b.{0,80}\bmodel\b
    """)
)
"""What means training only if an environment is named."""

_RUN = r"(?:the |my |this |that )?(?:last |latest |newest |previous )?(?:run|training|job)"
_YOU = r"^(?:(?:can|could|would|will) you |please |and )*"
PHRASES: list[tuple[Act, re.Pattern[str]]] = [
    (act, _compiled(one_of(phrases)))
    for act, phrases in [
        (
            Act.HELP,
            r"""
            \bwhat (?:can|do|could) you (?:do|help|offer)\b|\bwho are you\b|\bwhat are you\b
            \bare you (?:a|an|chat|claude|gpt|real|human)
            \bhow (?:do|can|should) i use (?:you|this|rl-cli|it)\b
            ^(?:hi|hello|hey|good (?:morning|evening|day))\b[\s!.]*$|\bhelp(?: me)?$
            """,
        ),
        (Act.FORBIDDEN, r"\b(?:delete|erase|purge|wipe|get rid of)\b"),
        (
            Act.HOW_LONG,
            r"""
            \bhow (?:long|much time)\b.*\b(?:does|would|do|might|could)\b.*\btrain(?:ing)?\b
            \bhow (?:long|much time)\b.*\bto train\b|\bhow long (?:will|is) training\b
            """,
        ),
        (
            Act.COST,
            r"\bcosts?\b|\b(?:have|did|was|were|has) .{0,24}\bspen[dt]\b|\bspending\b|\bhow expensive\b",
        ),
        (
            Act.HOW,
            r"""
            \bhow (?:long|much|many)\b.* (?:does|would|do) (?:a |the )?training\b
            \bhow (?:long|much|many)\b.* (?:does it take|do (?:you|i) need) to train\b
            """,
        ),
        (
            Act.ENVIRONMENTS,
            r"""
            \b(?:environments|envs)\b|\bwhat (?:can|could) (?:i|you|we|be) (?:train|learn)
            \b(?:which|what) (?:environment|env)s?\b
            \b(?:which|what) (?:task|dataset)s?\b.*\b(?:train|are there|available|have|can|should)\b
            \bwhat (?:is|'s) (?:available|there to train|trainable)
            """,
        ),
        (
            Act.COMPARE,
            r"""
            \b(?:best|top)(?: \w+){0,2} (?:runs?|trainings?)\b|\bwhich (?:run|training|one)\b.{0,20}\bbest\b
            \bcompar\w+|\bversus\b|\bvs\b|\bdifference between\b.*\bruns?\b
            \bwhich (?:run|one|of (?:the|my|them)|model|training).{0,40}\b(?:better|best|higher|won|wins)\b
            """,
        ),
        (
            Act.TOOLS,
            r"""
            \b(?:list|show|display|see|what|which|all|your|any|how many)\b.*\btools\b(?!-)
            ^(?:rl )?tools$
            """,
        ),
        (
            Act.RUNS,
            r"""
            \b(?:list|show|display|see|what|which|all|my|any|how many)\b.*\b(?:runs|trainings|run history)\b
            ^(?:which|what) (?:one )?(?:run |training )?(?:has |have )?(?:failed|crashed)\b
            ^(?:runs|history|past runs|recent runs|training history)$
            """,
        ),
        (
            Act.RESULTS,
            r"""
            \bresults?\b|\boutcomes?\b|\bscores?\b|\breport\b|\bfinal accuracy\b|^accuracy\b
            \bhow (?:did|has) (?:it|that|the|my)\b.*\b(?:go|gone|do|done|perform|performed|end|turn out)\b
            \bhow (?:good|well|accurate) (?:is|did|was|does)\b|\b(?:what|which) accuracy\b
            \bsummar(?:y|i[sz]e)\b|\brecap\b|\bsum up\b
            \bdid (?:it|that|the run) (?:work|learn|help|succeed|improve)\b
            \bwhat did (?:it|the run|training) (?:reach|learn|achieve|gain)\b
            """,
        ),
        (
            Act.STATUS,
            rf"""
            \bstatus\b|\bprogress\b|\beta\b|\bstill running\b|\bany (?:news|update)\b|\bupdate me\b
            \bhow (?:is|are) (?:it|things|everything|that|we|{_RUN})\b|\bhow's (?:it|everything|{_RUN})\b
            \bis (?:it|{_RUN}) (?:still |already |all )?(?:done|finished|running|over|ready|complete|going)\b
            \b(?:is|was) (?:it|{_RUN}) (?:still )?(?:healthy|fine|all right|doing (?:well|fine|ok(?:ay)?))\b
            \bhealth (?:of|check)\b|\bhealthy\b
            \b(?:show|see|list|give|tell|what|which|any|are there)\b.{{0,30}}\b(?:alerts?|warnings?)\b
            \bwhy (?:did|has|have) .{{0,30}}\b(?:fail|crash|stop|end)(?:ed)?\b
            \bis (?:it|{_RUN}) (?:still )?(?:working|training|alive|ok|stuck|improving)\b
            \b(?:has|did) (?:it|{_RUN}) (?:finish|end|complete|start|fail|crash|stop)
            \bhow (?:long|far|much longer)\b|\bwhen (?:will|is|does) (?:it|{_RUN})\b|\bshould i stop\b
            \bwhat(?: is|'s) (?:it|{_RUN}|happening|going on|running)\b
            \bwhere (?:is|are) (?:it|we|{_RUN})\b
            \b(?:show|see) (?:me )?(?:the |my )?(?:last|latest|current|newest)? ?run\b
            \bwhy did (?:it|{_RUN}) (?:stop|fail|end|crash)\b
            ^(?:can|could|should|may|is it possible to|how (?:do|can) (?:i|you|we)) .{{0,12}}\bresume\b
            """,
        ),
        (
            Act.CONFIG,
            r"\b(?:config|configuration|settings|hyper-?parameters|learning rate|batch size|group size)\b",
        ),
        (
            Act.HOW,
            r"""
            \b(?:how|what|why|when|explain|describe|tell me|should|shall)\b.*\b(?:train(?:ing|ed)?|grpo)\b
            \b(?:is|are)\b.*\b(?:train(?:ing|ed)?|grpo)\b
            \b(?:does|do|did|can|could|would|may|might|if|whether|wonder)\b.*\b(?:train(?:ing|ed)?|grpo)\b
            \b(?:teach me|learn about|about)\b.*\b(?:train|training|grpo)\b
            \b(?:how|what|why|explain|describe|about|if)\b.*\b(?:fine-?tun\w+|post-?training)\b
            \b(?:how|what|why|explain|describe|about|if)\b.*\b(?:reinforcement learning|rl)\b
            """,
        ),
        (
            Act.DESCRIBE,
            rf"""
            {_YOU}(?:describe|explain|introduce|inspect|look at|display|show(?: me)?|open)\b
            {_YOU}tell me (?:more )?about\b
            ^(?:details (?:of|on|about|for)|info(?:rmation)? (?:on|about|for)|more about|learn about)\b
            ^(?:what(?: is|'s| are| does| do)|which)\b|\babout\b.*\benvironment\b|\bhow (?:does|do|is|are)\b
            """,
        ),
        (Act.LIST, r"^(?:list|show|display)\b"),
        (Act.TRAIN_MENTION, r"\b(?:train|training|trained|fine-?tun\w+|post-?train\w*)\b"),
    ]
]
"""What else a clause can ask for, wherever the phrase stands; the first that matches decides."""
