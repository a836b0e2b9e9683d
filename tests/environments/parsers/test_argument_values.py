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
