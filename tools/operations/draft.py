"""The draft of a run's config. It belongs to the session: `CallContext.state` carries it as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rl_cli.core.json_text import to_json
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
        ToolError: No environment was selected yet, or the draft was written by another version.
    """
    from pydantic import ValidationError

    from rl_cli.config.tree import RunConfig

    kept = context.state.get("draft")
    if kept is None:
        raise ToolError(
            "no_environment", "no environment is selected yet", "call rl_select_environment with a name first"
        )
    try:
        config, original = (RunConfig.model_validate_json(to_json(kept[k])) for k in ("config", "original"))
    except ValidationError as error:
        raise ToolError(
            "no_environment",
            "the draft of this session was written by another version of rl-cli and cannot be read",
            "call rl_select_environment and rl_edit_config again",
        ) from error
    return Draft(config, original)


def put_draft(context: CallContext, draft: Draft) -> None:
    context.state["draft"] = {
        "config": draft.config.model_dump(mode="json"),
        "original": draft.original.model_dump(mode="json"),
    }


def scope_of_run(config: RunConfig, rollouts: int) -> dict[str, str | int]:
    """What an approval of this config is bound to; `rollouts` are the most that it covers."""
    same = {"environment": config.environment.name, "profile": config.profile}
    same |= {"backend": config.backend.name, "model": config.model.name}
    played = {"file": str(config.backend.file)} if config.backend.name == "replay" else {}
    return {**same, **played, "rollouts": rollouts}


def all_rollouts(config: RunConfig) -> int:
    """Of a whole training."""
    return config.grpo.steps * config.grpo.batch_size


def runs_own_code(name: str, folder: str | None = None) -> bool:
    """Whether looking at an environment imports a person's own file; False where there is no such one.

    Args:
        folder: Where the person's own environments lie; default: as the settings say.
    """
    from environments.catalogue import list_environments
    from rl_cli.core.settings import environments_folder

    known = list_environments(folder or environments_folder())
    return any(info.name == name and not info.builtin for info in known)
