"""Where the commands of an item run."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from rl_cli.core.errors import BadUsage
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from tools.dispatcher import CallContext
from tools.everyday.shell_session import session_of
from tools.sandboxes import kinds
from tools.sandboxes.base import SandboxConfig, SandboxError

WITH_IMAGE = frozenset({"docker", "apptainer", "modal", "daytona"})
"""Kinds that start from an image; a row's `cwd` is then a folder in it, else one of this computer."""
ENTER_SECONDS = 60.0


def sandbox_of(item: Item, config: BatchConfig) -> SandboxConfig:
    """The sandbox of an item; its own image goes before the batch's.

    Raises:
        SandboxError: An image is named, and the kind takes none.
    """
    wanted = config.sandbox
    kind, image = wanted.kind, item.image or config.agent_image or wanted.image
    if image and kind not in WITH_IMAGE:
        raise SandboxError(*_no_image(kind, image))
    on_host = item.cwd is not None and kind not in WITH_IMAGE
    workdir = Path(item.cwd).expanduser().absolute() if on_host and item.cwd else None
    return SandboxConfig(kind, image=image, network=wanted.network, workdir=workdir, options=wanted.options)


async def enter(context: CallContext, folder: str) -> None:
    """Makes a folder of the sandbox the one in which the terminal begins.

    Raises:
        SandboxError: There is none; or as `sandbox_of` of the tools.
    """
    session = await session_of(context)
    went = await session.sandbox.run(await session.script(f"cd -- {quote(folder)}", save=True), ENTER_SECONDS)
    if went.exit_code != 0:
        raise SandboxError(f"the row's folder {folder} cannot be entered: {went.stderr.text.strip()}")


def check_sandbox(config: BatchConfig) -> None:
    """Raises BadUsage where this machine has no such sandboxes, or they take no image and one is named."""
    kind, image = config.sandbox.kind, config.agent_image or config.sandbox.image
    if image and kind not in WITH_IMAGE:
        raise BadUsage(*_no_image(kind, image))
    why = kinds.usable(kind)
    if why is None:
        return
    others = [other for other in kinds.KINDS if other != kind and kinds.usable(other) is None]
    hint = f"mend that, or choose another kind: --sandbox {' or '.join(others)}" if others else None
    raise BadUsage(f"{kind} sandboxes cannot be used on this machine: {why}", hint)


def _no_image(kind: str, image: str) -> tuple[str, str]:
    choice = f"choose a kind that does: {', '.join(sorted(WITH_IMAGE))}"
    return f"{kind} starts from no image, and {image} is asked for", choice
