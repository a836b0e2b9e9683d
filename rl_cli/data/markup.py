"""Our tags and chat templates' tokens inside values: written so that nobody takes them for the real ones.

In text, `<` of such a tag becomes `&lt;` (`[` becomes `&#91;`), and what already looks like that gets one
more `amp;`; in JSON they become `\\u003c` and `\\u005b`, which every reader of JSON takes back. Everything
else stays as it is: `a < b`, `<div>`, `&lt;b>`.
"""

from __future__ import annotations

import re

_TAGS = "think|tools|tool_call|tool_response|REASONING_SCRATCHPAD"
_TOKENS = "s|bos|eos|start_of_turn|end_of_turn"
_BARRED = r'[|｜][^\s<>|｜\[\]"\\&]{1,64}[|｜]>'
"""As in `<|im_start|>`."""
_ANGLE = rf"(?=/?(?:{_TAGS}|{_TOKENS})>|{_BARRED})"
_SQUARE = r"(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT|THINK|ARGS)\])"

_PLAIN = re.compile(rf"<{_ANGLE}|\[{_SQUARE}")
_IN_TEXT = re.compile(rf"(?:<|&(?:amp;)*lt;){_ANGLE}|(?:\[|&(?:amp;)*#91;){_SQUARE}")
_ESCAPED = re.compile(rf"&(?:amp;)*lt;{_ANGLE}|&(?:amp;)*#91;{_SQUARE}")
_JSON_ESCAPE = re.compile(rf"\\(?:u003c{_ANGLE}|u005b{_SQUARE}|.)", re.DOTALL)
_FOR_TEXT = {"<": "&lt;", "[": "&#91;"}
_FROM_TEXT = {escaped: char for char, escaped in _FOR_TEXT.items()}
_FOR_JSON = {"<": r"\u003c", "[": r"\u005b"}
_FROM_JSON = {escaped: char for char, escaped in _FOR_JSON.items()}


def escape_text(text: str) -> str:
    return _IN_TEXT.sub(lambda found: _FOR_TEXT.get(found[0]) or f"&amp;{found[0][1:]}", text)


def unescape_text(text: str) -> str:
    """What `escape_text` was given."""
    return _ESCAPED.sub(lambda found: _FROM_TEXT.get(found[0]) or f"&{found[0][5:]}", text)


def escape_json(text: str) -> str:
    """JSON text of the same value without our tags."""
    return _PLAIN.sub(lambda found: _FOR_JSON[found[0]], text)


def unescape_json(text: str) -> str:
    """What `escape_json` was given, if none of its tags was written with an escape before."""
    if "\\u00" not in text:
        return text
    return _JSON_ESCAPE.sub(lambda found: _FROM_JSON.get(found[0], found[0]), text)
