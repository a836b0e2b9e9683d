"""@tool, and finding the tools that were defined with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tools.schema import arguments_model, json_schema, read_docstring
from tools.spec import CallContext, Caller, Estimate, Risk, ToolSpec
from tools.toolsets import OPERATIONS, TOOLSETS, implemented, load_toolsets, unknown_toolset

F = TypeVar("F", bound=Callable[..., Any])
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

_REGISTRY: dict[str, ToolSpec] = {}


def tool(
    *,
    toolset: str,
    risk: Risk = "read",
    deadline: float | None = None,
    exclusive: bool = False,
    estimate: Callable[[CallContext, dict[str, Any]], Estimate] | None = None,
    risk_of: Callable[[CallContext, dict[str, Any]], Risk] | None = None,
    covers: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Makes a typed function, sync or async, a tool of its own name. The function itself is unchanged.

    A parameter of type CallContext is filled in by the dispatcher; all others are arguments, described by the
    docstring's "Args:". What the function returns, if it is a dict, is merged into `{"ok": true}`.

    Args:
        toolset: Where it belongs.
        risk: What a call may do; all but "read" meet the approval policy.
        deadline: Seconds a call may take, for tools that wait by design; math.inf for no limit.
        exclusive: Never run at the same time as another call of its turn.
        estimate: What a call with these arguments would take, for whoever approves it.
        risk_of: What a call with these arguments may do, where that can be more than `risk`.
        covers: See `ToolSpec`; all of these tools give the same estimate.

    Raises:
        TypeError: The function cannot be described to a model, or the name is taken.
    """

    def register(function: F) -> F:
        name = function.__name__
        if not NAME.fullmatch(name):
            raise TypeError(f"'{name}' is no name for a tool")
        model, context_parameter = arguments_model(function)
        spec = ToolSpec(
            name=name,
            toolset=toolset,
            risk=risk,
            description=read_docstring(function)[0],
            parameters=json_schema(model),
            model=model,
            function=function,
            context_parameter=context_parameter,
            deadline=deadline,
            exclusive=exclusive,
            estimate=estimate,
            risk_of=risk_of,
            covers=covers,
        )
        earlier = _REGISTRY.get(name)
        if earlier and earlier.function.__module__ != function.__module__:
            raise TypeError(
                f"two tools are named '{name}': in {earlier.function.__module__} and {function.__module__}"
            )
        _REGISTRY[name] = spec
        return function

    return register


def tool_specs(toolsets: Iterable[str], caller: Caller | None = None) -> dict[str, ToolSpec]:
    """The tools of some toolsets by name, in the toolsets' order and then in that of their definition.

    Raises:
        BadUsage: There is no such toolset (with the nearest names).
        ValueError: The caller is a rollout and asks for tools of the assistant.
    """
    wanted = list(dict.fromkeys(toolsets))
    if caller == "rollout" and (taboo := OPERATIONS.intersection(wanted)):
        raise ValueError(f"a rollout is never offered the operations toolsets: {', '.join(sorted(taboo))}")
    load_toolsets(t for t in wanted if t in TOOLSETS)
    defined = {spec.toolset for spec in _REGISTRY.values()}
    for toolset in wanted:
        if toolset not in TOOLSETS and toolset not in defined:  # an environment's own file may define some
            raise unknown_toolset(toolset, sorted(defined | set(TOOLSETS)))
    return {spec.name: spec for toolset in wanted for spec in _REGISTRY.values() if spec.toolset == toolset}


def tool_schemas(toolsets: Iterable[str], caller: Caller | None = None) -> list[dict[str, Any]]:
    """The same tools in OpenAI's form."""
    return [spec.schema() for spec in tool_specs(toolsets, caller).values()]


def find_tool(name: str) -> ToolSpec | None:
    """The tool of that name from any toolset, or None."""
    return all_tools().get(name)


def all_tools() -> dict[str, ToolSpec]:
    """Every tool there is, by name."""
    return {**tool_specs(implemented()), **_REGISTRY}
