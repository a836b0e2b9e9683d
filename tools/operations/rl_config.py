"""Tools: reading and editing the draft config."""

from __future__ import annotations

import asyncio
from typing import Any

from tools.dispatcher import CallContext, Estimate, Risk, ToolError, tool
from tools.operations.draft import Draft, current_draft, put_draft, runs_own_code


@tool(toolset="rl", risk="read")
async def rl_get_current_config(context: CallContext) -> dict[str, Any]:
    """Show the draft config: every field under its dotted name, what was changed, and what is locked.

    Next: rl_edit_config, or rl_test_inference when nothing is to be changed.
    """
    from rl_cli.config.fields import flatten
    from rl_cli.config.profiles import load_profile

    draft = current_draft(context)
    return {
        "environment": draft.config.environment.name,
        "profile": draft.config.profile,
        "config": flatten(draft.config),
        "changed": draft.changed(),
        "locked": load_profile(draft.config.profile).locked,
    }


def _edit_risk(context: CallContext, arguments: dict[str, Any]) -> Risk:
    """Changes are checked against the environment's own description, which a person's file makes."""
    section = current_draft(context).config.environment
    return "execute" if runs_own_code(section.name, section.folder) else "write"


def _what(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    section = current_draft(context).config.environment
    own = runs_own_code(section.name, section.folder)
    return Estimate(what=f"run the Python file of {section.name} in {section.folder}" if own else "")


@tool(toolset="rl", risk="write", exclusive=True, risk_of=_edit_risk, estimate=_what)
async def rl_edit_config(context: CallContext, changes: dict[str, Any]) -> dict[str, Any]:
    """Change fields of the draft config, all together or not at all.

    Args:
        changes: Dotted field name -> new value, e.g. {"grpo.steps": 60, "grpo.learning_rate": 2e-4}.
    """
    from rl_cli.config.edit import edit
    from rl_cli.config.fields import flatten
    from rl_cli.core.errors import BadUsage

    draft = current_draft(context)
    before = flatten(draft.config)
    try:
        config = await asyncio.to_thread(edit, draft.config, changes)
    except BadUsage as error:
        raise ToolError("invalid_config", error.message, error.hint) from error
    put_draft(context, Draft(config, draft.original))
    after = flatten(config)
    return {
        "changed": {
            field: {"from": before.get(field), "to": value}
            for field, value in after.items()
            if before.get(field) != value
        }
    }
