from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tests.tools.sample_tools  # noqa: F401
from tests.readme_map import ROOT
from tools.dispatcher import CallContext, all_tools, tool, tool_schemas, tool_specs


def test_the_schema_comes_from_signature_and_docstring() -> None:
    schema = next(s for s in tool_schemas(["test"]) if s["function"]["name"] == "echo")["function"]
    assert schema["description"] == "Returns what it was given.\n\nHas a second paragraph."
    properties = schema["parameters"]["properties"]
    assert properties["text"] == {"type": "string", "description": "What to say, over two lines."}
    assert properties["count"] == {"type": "integer", "default": 1, "description": "How often."}
    assert properties["mode"] == {"type": "string", "enum": ["plain", "loud"], "default": "plain"}
    assert properties["json"] == {"type": "integer", "minimum": 0, "maximum": 9, "default": 0}
    assert schema["parameters"]["required"] == ["text"]
    assert schema["parameters"]["additionalProperties"] is False


def test_the_context_is_no_argument() -> None:
    assert tool_specs(["test"])["whoami"].parameters["properties"] == {}


def test_tools_come_in_the_order_of_toolsets_and_definition() -> None:
    names = list(tool_specs(["math", "test", "math"]))
    assert names[:3] == ["calculator", "echo", "whoami"]


def no_docstring(x: int) -> int:
    return x


def no_type(x) -> int:  # type: ignore[no-untyped-def]
    """Has a parameter without a type."""
    return x


def variadic(*x: int) -> None:
    """Takes any number."""


def misdescribed(x: int) -> None:
    """Describes what it does not take.

    Args:
        y: Not there.
    """


def calculator(x: int) -> None:
    """Has a name that is taken."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (no_docstring, "no docstring"),
        (no_type, "'x' has no type"),
        (variadic, "must be a plain named one"),
        (misdescribed, "describes what it does not take: y"),
        (calculator, "two tools are named 'calculator'"),
        (lambda: None, "no name for a tool"),
    ],
)
def test_a_function_that_cannot_be_described_is_refused_where_it_is_defined(
    function: Callable[..., Any], words: str
) -> None:
    tool_specs(["math"])
    with pytest.raises(TypeError, match=words):
        tool(toolset="broken")(function)


def test_the_context_type_need_not_be_imported_at_run_time() -> None:
    def late(x: int, context: "CallContext") -> None:  # noqa: UP037
        """Names the type only."""

    late.__globals__["CallContext"], saved = None, late.__globals__["CallContext"]
    try:
        assert tool(toolset="late")(late) is late
    finally:
        late.__globals__["CallContext"] = saved
    assert tool_specs(["late"])["late"].context_parameter == "context"


def test_every_tool_of_the_product_describes_all_it_takes() -> None:
    for spec in all_tools().values():
        if not spec.function.__module__.startswith("tools."):
            continue
        for name, schema in spec.parameters["properties"].items():
            assert schema.get("description"), f"{spec.name}: {name}"


def test_a_python_without_docstrings_is_told_what_to_do() -> None:
    code = "from tools.schema import read_docstring as read; read(print)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "BadUsage: Python dropped the docstrings" in done.stderr
