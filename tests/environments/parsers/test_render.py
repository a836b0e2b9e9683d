"""What a family writes, it reads back: any call, or it says that it cannot write it."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.parsers.grammar import CannotRender
from environments.parsers.parser import Family
from tests.environments.parsers.calls import calls, texts, tools_for
from tests.environments.parsers.replay import in_pieces, stream

families = st.sampled_from(list(FAMILIES.values()))
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
some_calls = st.lists(calls(), max_size=3, unique_by=lambda call: call.name)
wild_calls = st.lists(calls(texts, texts), max_size=3, unique_by=lambda call: call.name)


@given(families, some_calls | wild_calls, st.sampled_from(["", "Let me see.\n"]))
def test_what_is_written_is_read_back(family: Family, written: list[ParsedCall], before: str) -> None:
    try:
        text = before + family.render(written)
    except CannotRender:
        assume(False)
    tools = tools_for(written)
    parsed = family.parse(text, tools)
    assert (parsed.content or "", parsed.reasoning, parsed.errors) == (before.strip(), None, [])
    assert [(call.name, value(call)) for call in parsed.tool_calls] == [
        (call.name, value(call)) for call in written
    ]
    assert stream(family, tools, in_pieces(text, 5)) == parsed


@every_family
def test_calls_as_models_write_them_can_always_be_written(family: Family) -> None:
    plain = (
        st.text(st.characters(exclude_characters="<|"), max_size=30)
        | st.integers()
        | st.booleans()
        | st.none()
    )
    inside = st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), plain, max_size=3)

    @settings(max_examples=10)
    @given(
        st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), plain | inside | st.lists(plain))
    )
    def never_refused(arguments: dict[str, object]) -> None:
        family.render([ParsedCall("tide_table", json.dumps(arguments))])

    never_refused()


@every_family
@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": ' + "[" * 400 + "]" * 400 + "}",
        '{"a": ' + '{"b": ' * 400 + "1" + "}" * 400 + "}",
        '{"a": 1e999, "b": -0.0, "c": 12345678901234567890.5, "d": 1E5}',
        '{"a": "\\ud800", "b": "\\ud83d\\ude00", "c": "\\u0000\\u0007\\u2028"}',
        '{"a": "</tool_call> </parameter> x </arg_value> x <|tool_call_end|>\\n```\\n"}',
        '{"a": "\\n\\n x \\r\\n"}',
        '{"a": ' + "7" * 200 + "}",
    ],
    ids=["lists", "objects", "numbers", "escapes", "marks", "white space", "long integer"],
)
def test_hard_arguments(family: Family, arguments: str) -> None:
    text = family.render([ParsedCall("f", arguments)])
    kinds = {"[": "array", "{": "object", '"': "string"}
    tools = [
        {
            "name": "f",
            "parameters": {
                "properties": {
                    key: {"type": kinds.get(arguments[arguments.index(f'"{key}"') + 5], "number")}
                    for key in "abcd"
                    if f'"{key}"' in arguments
                }
            },
        }
    ]
    parsed = family.parse(text, tools)
    assert parsed.errors == []
    (call,) = parsed.tool_calls
    assert value(call) == value(ParsedCall("f", arguments))


@every_family
def test_no_calls_are_no_text(family: Family) -> None:
    assert family.render([]) == ""


@every_family
@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", '{"a": NaN}', "{} {}", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(family: Family, arguments: str) -> None:
    with pytest.raises(CannotRender, match="no JSON object"):
        family.render([ParsedCall("f", arguments)])


@every_family
def test_a_call_without_a_name_is_refused(family: Family) -> None:
    with pytest.raises(CannotRender):
        family.render([ParsedCall(" ", "{}")])


@pytest.mark.parametrize("call_id", ["functions.f:7", "call_abc", "functions.g:1", ""])
def test_kimi_ids_that_name_the_call_are_kept(call_id: str) -> None:
    family = FAMILIES["kimi_k2"]
    (call,) = family.parse(family.render([ParsedCall("f", "{}", call_id)])).tool_calls
    assert call == ParsedCall("f", "{}", "functions.f:7" if call_id == "functions.f:7" else "functions.f:0")


def value(call: ParsedCall) -> str:
    """The arguments in one form, numbers told apart by their digits."""
    return json.dumps(json.loads(call.arguments, parse_int=str), sort_keys=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_call_that_is_cut_off_is_never_a_shorter_one(name: str) -> None:
    arguments = {"path": "a/b c", "days": 3, "options": {"deep": [1, "two"]}}
    types = {"path": "string", "days": "integer", "options": "object"}
    schema = {"properties": {key: {"type": kind} for key, kind in types.items()}}
    text = FAMILIES[name].render([ParsedCall("save", json.dumps(arguments))])
    for end in range(len(text)):
        for call in FAMILIES[name].parse(text[:end], [{"name": "save", "parameters": schema}]).tool_calls:
            assert (call.name, json.loads(call.arguments)) == ("save", arguments), text[:end]
