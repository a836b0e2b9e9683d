"""The tools that a model was offered, as parsers need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from environments.parsers.argument_types import ParameterTypes

Tools = Iterable[Mapping[str, Any] | str]
"""OpenAI tools: `{"type": "function", "function": {"name", "parameters"}}`, the inner part, or names."""


def offered(tools: Tools | None) -> dict[str, ParameterTypes]:
    """The types of the parameters of each tool, by name; what is no definition is left out.

    Raises:
        TypeError: They are no list.
    """
    if tools is not None and (isinstance(tools, str) or not isinstance(tools, Iterable)):
        raise TypeError(f"tools must be a list of definitions or names, not {type(tools).__name__}")
    found: dict[str, ParameterTypes] = {}
    for tool in tools or ():
        if isinstance(tool, str):
            found[tool] = ParameterTypes(None)
            continue
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            found[function["name"]] = ParameterTypes(parameters if isinstance(parameters, Mapping) else None)
    return found
