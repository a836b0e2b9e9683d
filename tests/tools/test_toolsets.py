from __future__ import annotations

import subprocess
import sys

import pytest

from rl_cli.core.errors import BadUsage
from tests.tools.calls import call, context, error
from tools.dispatcher import CallContext, tool_schemas, tool_specs
from tools.toolsets import OPERATIONS, TOOLSETS, implemented, load_toolsets, why_unavailable


def test_an_unknown_toolset_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(BadUsage, match="did you mean math"):
        tool_specs(["maths"])
    with pytest.raises(BadUsage, match="unknown toolset 'nothing'"):
        load_toolsets(["nothing"])
    assert error("calculator", toolsets=("maths",))[0] == "bad_usage"


@pytest.mark.parametrize("toolset", ["vision", "image_generation"])
def test_a_set_without_an_implementation_says_so(toolset: str) -> None:
    with pytest.raises(BadUsage, match=f"'{toolset}' is unavailable: not implemented"):
        tool_specs([toolset])
    assert why_unavailable(toolset) == TOOLSETS[toolset].unavailable
    assert toolset not in implemented()


def test_only_the_toolsets_of_the_context_can_be_called() -> None:
    assert error("calculator", {"expression": "1"}, toolsets=("test",))[0] == "unknown_tool"
    assert call("calculator", {"expression": "1"}, toolsets=("math",))["result"] == 1
    assert "no tools are offered" in error("calculator", {"expression": "1"}, toolsets=())[1]


@pytest.mark.parametrize("toolset", sorted(OPERATIONS))
def test_a_rollout_is_never_offered_operations(toolset: str) -> None:
    with pytest.raises(ValueError, match="never offered"):
        tool_schemas([toolset], caller="rollout")
    with pytest.raises(ValueError, match="never offered"):
        CallContext("rollout", "t", ("math", toolset))
    smuggled = context("rollout", toolsets=("math",))
    smuggled.toolsets = ("math", toolset)
    name = next(iter(tool_specs([toolset])))
    assert error(name, {}, given=smuggled)[0] == "unknown_tool"


def test_toolsets_are_loaded_on_demand() -> None:
    code = "import sys, tools.dispatcher as d; d.tool_specs(['math']); print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tools.everyday.calculator" in loaded
    others = {module for name, toolset in TOOLSETS.items() if name != "math" for module in toolset.modules}
    assert not others & set(loaded)
