"""What the bare text of an argument becomes: references in schemas, line breaks around values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from tests.environments.parsers.replay import splits, stream

CODER = FAMILIES["qwen3_coder"]


def tool(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


def value(written: str, parameters: dict[str, Any]) -> Any:
    text = f"<function=f><parameter=x>{written}</parameter></function>"
    tools = tool(parameters)
    parsed = CODER.parse(text, tools)
    assert all(stream(CODER, tools, pieces) == parsed for pieces in splits(text))
    (call,) = parsed.tool_calls
    return json.loads(call.arguments)["x"]


def refers(to: str) -> dict[str, Any]:
    return {"properties": {"x": {"$ref": to}}}


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({**refers("#/$defs/Count"), "$defs": {"Count": {"type": "integer"}}}, 5),
        ({**refers("#/definitions/a~1b%20c"), "definitions": {"a/b c": {"type": "integer"}}}, 5),
        ({"properties": {"x": {"anyOf": [{"$ref": "#/$defs/N"}]}}, "$defs": {"N": {"type": "number"}}}, 5),
        ({**refers("#/$defs/A"), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "integer"}}}, 5),
        ({"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"x": {"type": "integer"}}}}}, 5),
        ({**refers("#/$defs/Text"), "$defs": {"Text": {"type": "string"}}}, "5"),
        ({**refers("#/$defs/none"), "$defs": {}}, "5"),
        (refers("https://example.org/count.json"), "5"),
        ({**refers("#/$defs/A"), "$defs": {"A": {"$ref": "#/$defs/A"}}}, "5"),
    ],
)
def test_references_in_a_schema_are_followed(parameters: dict[str, Any], found: Any) -> None:
    assert value("5", parameters) == found


def test_schemas_that_refer_to_themselves_many_times_are_read_at_once() -> None:
    again = {"$ref": "#/$defs/A"}
    branches = {"anyOf": [again, again, {"type": "integer"}, again], "allOf": [again] * 50}
    assert value("5", {**refers("#/$defs/A"), "$defs": {"A": branches}}) == 5


def test_long_lists_of_values_are_read_once() -> None:
    values = {"enum": [*map(str, range(50_000)), 5]}
    names = [f"p{number}" for number in range(2_000)]
    parameters = tool({"properties": dict.fromkeys(names, values)})
    text = "".join(f"<parameter={name}>5</parameter>" for name in names)
    (call,) = CODER.parse(f"<function=f>{text}</function>", parameters).tool_calls
    assert json.loads(call.arguments) == dict.fromkeys(names, 5)


def test_deep_and_wide_schemas_are_read_once() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(200):
        schema = {"anyOf": [schema, schema]}
    assert value("5", {"properties": {"x": schema}}) == 5


NESTED = {
    "properties": {
        "o": {"type": "object", "properties": {"zip": {"type": "string"}, "b": {"$ref": "#/$defs/B"}}},
        "l": {"type": "array", "items": {"type": "string"}},
        "e": {"type": "array"},
        "n": {"type": "integer", "nullable": True},
    },
    "$defs": {"B": {"type": "boolean"}},
}


def test_the_schema_counts_inside_of_values_too() -> None:
    mark = "]<]minimax[>["
    inside = "<o>|<zip>007|</zip>|<b>1|</b>|</o>|<l>|<item>007|</item>|<item>true|</item>|</l>|<e>|</e>"
    text = f'|<invoke name="f">|{inside}|<n>null|</n>|</invoke>'.replace("|", mark)
    (call,) = FAMILIES["minimax_m3"].parse(text, tool(NESTED)).tool_calls
    wanted = {"o": {"zip": "007", "b": True}, "l": ["007", "true"], "e": [], "n": None}
    assert json.loads(call.arguments) == wanted
    text = "<|tool_call>call:f{o:{zip:007,b:true},l:[007],n:null}<tool_call|>"
    (call,) = FAMILIES["gemma4"].parse(text, tool(NESTED)).tool_calls
    assert json.loads(call.arguments) == {"o": {"zip": "007", "b": True}, "l": ["007"], "n": None}


def test_tools_that_are_no_list_are_refused() -> None:
    for tools in (5, True, "f"):
        with pytest.raises(TypeError, match="tools must be a list"):
            CODER.parse("", tools)  # type: ignore[arg-type]


def test_an_argument_that_comes_twice_is_told_of() -> None:
    twice = "<parameter=x>1</parameter><parameter=x>2</parameter>"
    parsed = CODER.parse(f"<function=f>{twice}</function>")
    assert json.loads(parsed.tool_calls[0].arguments) == {"x": "2"}
    assert [error.reason for error in parsed.errors] == [
        "the argument 'x' is given twice: the last one counts"
    ]


XML = ("qwen3_coder", "seed_oss", "glm45", "glm47", "minimax_m2", "deepseek_v32", "deepseek_v4", "step3")
CLOSERS = {
    **dict.fromkeys(("qwen3_coder", "seed_oss", "minimax_m2"), "</parameter>"),
    **dict.fromkeys(("glm45", "glm47"), "</arg_value>"),
    **dict.fromkeys(("deepseek_v32", "deepseek_v4"), "</｜DSML｜parameter>"),
    "step3": "</steptml:parameter>",
    "kimi_k3": "<|close|>argument<|sep|>",
    "minimax_m3": "]<]minimax[>[</text>",
    "gemma4": '<|"|>',
    "functiongemma": "<escape>",
}


@pytest.mark.parametrize("family", CLOSERS)
def test_a_value_that_is_never_closed_leaves_the_next_call_alone(family: str) -> None:
    good = FAMILIES[family].render([ParsedCall("good", '{"a": "b"}')])
    call = FAMILIES[family].render([ParsedCall("f", '{"text": "abc"}')])
    before, _, after = call.rpartition(CLOSERS[family])
    text = f"{before}{after}\n{good}"
    parsed = FAMILIES[family].parse(text)
    assert [call.name for call in parsed.tool_calls] == ["good"]
    assert f"{before}{after}".startswith(parsed.content or "?")
    assert "abc" in (parsed.content or "")
    assert len(parsed.errors) == 1
    assert all(stream(FAMILIES[family], [], pieces) == parsed for pieces in splits(text))


@pytest.mark.parametrize("family", XML)
def test_a_value_may_quote_whole_calls(family: str) -> None:
    quoted = FAMILIES[family].render([ParsedCall("quoted", '{"a": "1", "b": "2"}')])
    said = json.dumps({"text": f"such as {quoted}, {quoted}{quoted} or </tool_call>", "more": "x"})
    text = FAMILIES[family].render([ParsedCall("f", said), ParsedCall("good", "{}")])
    parsed = FAMILIES[family].parse(text)
    assert [call.name for call in parsed.tool_calls] == ["f", "good"]
    assert json.loads(parsed.tool_calls[0].arguments) == json.loads(said)
    assert (parsed.content, parsed.errors) == (None, [])


PYTHON = FAMILIES["llama_pythonic"]


@pytest.mark.parametrize(
    ("literal", "found"),
    [
        ("(1)", 1),
        ("('abc')", "abc"),
        ("()", []),
        ("(1,)", [1]),
        ("((1), (2,))", [1, [2]]),
        ("{'a': (None)}", {"a": None}),
        (r"'\033[0m'", "\x1b[0m"),
        (r"'\08'", "\x008"),
        (r"'\377'", "\xff"),
        ("r'\\d'", r"\d"),
    ],
)
def test_python_literals_mean_what_python_means(literal: str, found: Any) -> None:
    text = f"[f(x={literal}, y=1)]"
    parsed = PYTHON.parse(text)
    assert json.loads(parsed.tool_calls[0].arguments) == {"x": found, "y": 1}
    assert all(stream(PYTHON, [], pieces) == parsed for pieces in splits(text))


@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text", ["a", "", "\n", "\r\n", "\r\na\r\n", "\na\n", "a\r\nb", " a ", "a\n\r\n", "\ra"]
)
def test_one_line_break_on_each_side_of_a_value_belongs_to_the_tags(text: str, line: str) -> None:
    assert value(f"{line}{text}{line}", {}) == text


@pytest.mark.parametrize("text", ["a", "\r", "a\r", "\ra", ""])
def test_a_value_without_line_breaks_is_as_it_was_written(text: str) -> None:
    assert value(text, {}) == text


@pytest.mark.parametrize("text", ["a\r", "\r", "\r\n", "\n\r", "a\r\r", "\ra\n"])
def test_line_breaks_in_values_are_read_back(text: str) -> None:
    (call,) = CODER.parse(CODER.render([ParsedCall("f", json.dumps({"x": text}))])).tool_calls
    assert json.loads(call.arguments) == {"x": text}
