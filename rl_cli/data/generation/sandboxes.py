"""Where the commands of an item run."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from shlex import quote

from environments.tool_context import ToolContext
from rl_cli.agent.workspace import why_not
from rl_cli.core.errors import BadUsage
from rl_cli.core.settings import home
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from tools.dispatcher import CallContext
from tools.everyday.shell_session import session_of
from tools.sandboxes import kinds
from tools.sandboxes.base import SandboxConfig, SandboxError

WITH_IMAGE = frozenset({"docker", "apptainer", "modal", "daytona"})
"""Kinds that start from an image; a row's `cwd` is then a folder in it, else one beside the input."""
ENTER_SECONDS = 60.0


def sandbox_of(item: Item, config: BatchConfig) -> SandboxConfig:
    """The sandbox of an item; its own image goes before the batch's.

    Raises:
        SandboxError: An image is named, and the kind takes none.
    """
    wanted = config.sandbox
    kind, image = wanted.kind, item.image or config.agent_image or wanted.image
    if image and kind not in WITH_IMAGE:
        raise SandboxError(*no_image(kind, image))
    return SandboxConfig(kind, image=image, network=wanted.network, options=wanted.options)


async def bring(ctx: ToolContext, item: Item, config: BatchConfig) -> None:
    """Gives an item's sandbox a copy of the folder that its row names, where the kind starts from no image.

    Raises:
        SandboxError: As `folder_of`, or it cannot be read.
        ToolError: The sandbox cannot be started, or cannot take it.
    """
    if config.sandbox.kind in WITH_IMAGE or not item.cwd:
        return
    folder = await asyncio.to_thread(folder_of, item.cwd, config.input)
    try:
        await ctx.upload(folder, ".")
    except OSError as error:
        raise SandboxError(f"the row's folder {folder} cannot be copied: {error}") from error


def folder_of(cwd: str, source: str) -> Path:
    """The folder that a row names, absolute, without links. Who wrote the rows need not be who runs them, so
    it lies beside the input or below.

    Args:
        source: The input that the row is of.

    Raises:
        SandboxError: It lies elsewhere, or there is none.
    """
    if not os.path.exists(source):
        raise SandboxError(
            f"the row names the folder {cwd}, and {source} is no file here beside which it could lie",
            "choose a kind of sandbox that starts from an image",
        )
    input_ = Path(source).resolve()
    beside = input_ if input_.is_dir() else input_.parent
    if why := why_not(beside, home()):
        raise SandboxError(
            f"the row names the folder {cwd}, and the input may name none, since {why}",
            "put the input and its folders into a folder of their own",
        )
    folder = (beside / cwd).resolve()
    if not folder.is_relative_to(beside):
        raise SandboxError(
            f"the row names the folder {folder}, which does not lie in {beside}, where the input is",
            "put it there",
        )
    if not folder.is_dir():
        raise SandboxError(f"the row names the folder {folder}, and there is none")
    return folder


async def enter(context: CallContext, folder: str) -> None:
    """Makes a folder of the sandbox the one in which the terminal begins.

    Raises:
        SandboxError: There is none; or as `sandbox_of` of the tools.
    """
    session = await session_of(context)
    script = await session.script(f"cd -- {quote(folder)}", save=True)
    went = await session.sandbox.run(script, ENTER_SECONDS, bash=True)
    if went.exit_code != 0:
        raise SandboxError(f"the row's folder {folder} cannot be entered: {went.stderr.text.strip()}")


def check_sandbox(config: BatchConfig) -> None:
    """Raises BadUsage where this machine has no such sandboxes, or they take no image and one is named."""
    kind, image = config.sandbox.kind, config.agent_image or config.sandbox.image
    if image and kind not in WITH_IMAGE:
        raise BadUsage(*no_image(kind, image))
    why = kinds.usable(kind)
    if why is None:
        return
    others = [other for other in kinds.KINDS if other != kind and kinds.usable(other) is None]
    hint = f"mend that, or choose another kind: --sandbox {' or '.join(others)}" if others else None
    raise BadUsage(f"{kind} sandboxes cannot be used on this machine: {why}", hint)


def no_image(kind: str, image: str) -> tuple[str, str]:
    """What is wrong where an image is named and the kind takes none, and what helps."""
    choice = f"choose a kind that does: {', '.join(sorted(WITH_IMAGE))}"
    return f"{kind} starts from no image, and {image} is asked for", choice
