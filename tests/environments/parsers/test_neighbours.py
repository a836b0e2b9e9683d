"""A broken call is reported and takes no good neighbour with it; what it quotes does not become one."""

from __future__ import annotations

import pytest

from environments.parsers.families import FAMILIES
from tests.environments.parsers.replay import in_pieces, stream

GOOD = r'{"name": "good", "arguments": {"x": "}}, {\"name\": \"quoted\""}}'
BROKEN = {
    "backslash": r'{"name": "f", "arguments": {"path": "C:\dir"}}',
    "quotes in a string": '{"name": "f", "arguments": {"p": "a"b"c"}}',
    "no closing quote": '{"name": "f", "arguments": {"p": "a}}',
    "no closing brace": '{"name": "f", "arguments": {"p": 1}',
    "constant": '{"name": "f", "arguments": {"p": NaN}}',
    "Python": """{'name': 'f', 'arguments': {'p': "it's"}}""",
    "arguments in a list": '{"name": "f", "arguments": [1]}',
    "bare name": '{"name": f, "arguments": {}}',
    "no name": '{"arguments": {}}',
    "comma at the end": '{"name": "f", "arguments": {"p": 1,}}',
    "text": '"f"',
    "null": "null",
    "quotes a call": '{"name": "f", "arguments": {"p": "{"name": "quoted", "arguments": {}}"}}',
    "quotes calls": '{"name": "f", "arguments": {"p": "[{"x": 1}, {"name": "quoted", "arguments": {}}]"}}',
}
LISTS = {
    "granite": "<|tool_call|>[{}]",
    "hunyuan_a13b": "<tool_calls>[{}]</tool_calls>",
    "mistral_pre_v11": "[TOOL_CALLS] [{}]",
    "xlam": "[{}]",
}
TAGGED = {
    "hermes": "<tool_call>\n{}\n</tool_call>\n",
    "longcat": "<longcat_tool_call>\n{}\n</longcat_tool_call>\n",
    "ernie45": "<tool_call>{}</tool_call>",
}
PYTHON_GOOD = 'good(x="), quoted()")'
PYTHON_BROKEN = [
    "f(1)",
    "f(a=b)",
    'f(a=open("x)"))',
    "f(a=1 b=2)",
    "f",
    "f(a={1: 2})",
    'f(a="""x"y, quoted()"""+1)',
]
PYTHON_LISTS = {
    "llama_pythonic": ("[{}]", ", "),
    "lfm2": ("<|tool_call_start|>[{}]<|tool_call_end|>", ", "),
    "olmo3": ("<function_calls>\n{}\n</function_calls>", "\n"),
}
NAMED = {
    "mistral": ("[TOOL_CALLS]{}[ARGS]{}", "{}"),
    "deepseek_v31": (
        "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>",
    ),
    "kimi_k2": (
        "<|tool_call_begin|>functions.{}:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>",
    ),
    "gpt_oss": ("<|start|>assistant<|channel|>commentary to=functions.{}<|message|>{}<|call|>", "{}"),
}
BROKEN_ARGUMENTS = [r'{"p": "C:\dir"}', '{"p": "a"b"c"}', '{"p": "a"b"}', '{"p": "a}', '{"p": 1', "[1]"]


def check(family: str, text: str, good: int) -> None:
    parsed = FAMILIES[family].parse(text)
    assert [call.name for call in parsed.tool_calls] == ["good"] * good
    assert parsed.errors
    assert stream(FAMILIES[family], None, in_pieces(text, 1)) == parsed


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("family", LISTS)
def test_in_a_list(family: str, broken: str) -> None:
    for calls in ([GOOD, broken], [GOOD, broken, GOOD], [broken, GOOD]):
        if family == "xlam" and calls[0] == broken:
            continue  # without marks, a list that begins so is an answer in JSON
        check(family, LISTS[family].replace("{}", ", ".join(calls)), calls.count(GOOD))


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("family", TAGGED)
def test_between_tags(family: str, broken: str) -> None:
    text = "".join(TAGGED[family].replace("{}", call) for call in (GOOD, broken, GOOD))
    check(family, text, 2)


@pytest.mark.parametrize("broken", BROKEN_ARGUMENTS)
@pytest.mark.parametrize("family", NAMED)
def test_after_its_name(family: str, broken: str) -> None:
    call, section = NAMED[family]
    calls = [("good", '{"x": 1}'), ("f", broken), ("good", '{"y": 2}')]
    written = (call.replace("{}", name, 1).replace("{}", arguments) for name, arguments in calls)
    check(family, section.replace("{}", "".join(written)), 2)


@pytest.mark.parametrize("broken", PYTHON_BROKEN)
@pytest.mark.parametrize("family", PYTHON_LISTS)
def test_in_python(family: str, broken: str) -> None:
    form, comma = PYTHON_LISTS[family]
    for calls in ([PYTHON_GOOD, broken], [PYTHON_GOOD, broken, PYTHON_GOOD], [broken, PYTHON_GOOD]):
        if family == "llama_pythonic" and calls[0] == "f":
            continue  # without marks, a list that begins so is a text in brackets
        check(family, form.replace("{}", comma.join(calls)), calls.count(PYTHON_GOOD))


def test_a_list_without_a_comma_is_read_and_told_of() -> None:
    parsed = FAMILIES["granite"].parse(f"<|tool_call|>[{GOOD} {GOOD}, {GOOD}}}, {GOOD}]")
    assert len(parsed.tool_calls) == 4
    reason = "the list of calls has no comma or closing bracket after a call"
    assert [error.reason for error in parsed.errors] == [reason, f"{reason}, but }}"]


def test_a_list_that_holds_only_broken_calls_stays_as_it_was() -> None:
    text = '<tool_calls>[{"name": f}]</tool_calls>'
    parsed = FAMILIES["hunyuan_a13b"].parse(text)
    assert (parsed.content, parsed.tool_calls) == (text, [])
