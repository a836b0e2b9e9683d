"""The draft of a run's config. It belongs to the session: `CallContext.state` carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.dispatcher import CallContext, ToolError

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig


@dataclass
class Draft:
    """A config that is being edited, beside what its profile started from."""

    config: RunConfig
    original: RunConfig

    def changed(self) -> dict[str, Any]:
        """Dotted field -> value, of the fields that differ from the profile's."""
        from rl_cli.config.fields import flatten

        before = flatten(self.original)
        return {field: value for field, value in flatten(self.config).items() if before.get(field) != value}


def current_draft(context: CallContext) -> Draft:
    """The session's draft.

    Raises:
        ToolError: No environment was selected yet.
    """
    draft = context.state.get("draft")
    if draft is None:
        raise ToolError(
            "no_environment", "no environment is selected yet", "call rl_select_environment with a name first"
        )
    return draft


def put_draft(context: CallContext, draft: Draft) -> None:
    context.state["draft"] = draft
