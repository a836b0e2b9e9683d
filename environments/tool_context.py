"""What setup(), teardown() and reward() are given: the tools, in the rollout's own sandbox, and a judge.

Every tool returns the dispatcher's object: `{"ok": true, ...}` or `{"ok": false, "error": {...}}`. Only where
the sandbox or the network failed it raises, since no verdict can rest on that. Waiting for one rollout's tool
holds up no other.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from environments.policies.base import Policy, Sampling
from rl_cli.core.messages import Message, user
from tools.dispatcher import CallContext, ToolError, handle_function_call
from tools.everyday.browser_session import close_session
from tools.everyday.task_sandbox import TaskSandbox, sandbox_of, tool_errors
from tools.sandboxes.base import DOWNLOAD_LIMIT, SandboxConfig
from tools.toolsets import implemented

INFRASTRUCTURE = frozenset({"sandbox", "network"})
"""Error types of tool results that spoil a rollout; every other failed call is the policy's to deal with."""


@dataclass
class ToolContext:
    """One per attempt at a task; its rollout's calls and its verifier's calls meet the same sandbox.

    The terminal is the same sandbox's, but another session: where the policy went with `cd` and what it
    exported is not inherited by its verifier.
    """

    task_id: str
    judge_policy: Policy | None = None
    """Whom judge() asks, where the caller handed one in."""
    config: SandboxConfig | None = None
    """How the sandbox is made; None: the default kind, without network."""
    sandbox: TaskSandbox = field(init=False)
    """Made when it is first used, ended by cleanup()."""
    state: dict[str, Any] = field(default_factory=dict)
    live: dict[str, Any] = field(default_factory=dict)
    """Of the calls of this attempt: its terminal, its browser."""

    def __post_init__(self) -> None:
        self.sandbox = TaskSandbox.of(self.config)

    def rollout_context(self, toolsets: tuple[str, ...]) -> CallContext:
        """The context in which the policy's own calls run."""
        return CallContext(
            caller="rollout",
            task_id=self.task_id,
            toolsets=toolsets,
            sandbox=self.sandbox,
            state=self.state,
            live=self.live,
        )

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Calls a tool of any toolset except the assistant's own, with what the dispatcher does for all.

        Raises:
            ToolError: The sandbox or the network failed ("sandbox", "network").
        """
        result: dict[str, Any] = json.loads(await handle_function_call(name, arguments, self._context()))
        error = result.get("error") or {}
        if error.get("type") in INFRASTRUCTURE:
            raise ToolError(error["type"], error["message"], error.get("hint"))
        return result

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The same, with the arguments as keywords."""
        return await self.call_tool(name, arguments)

    async def terminal(self, command: str, timeout: float = 120) -> dict[str, Any]:  # noqa: ASYNC109
        """exit_code, stdout, stderr, truncated, seconds; timed_out where it was ended at its time-out."""
        return await self.call("terminal", command=command, timeout=timeout)

    async def read_file(self, path: str, start_line: int = 1, lines: int = 10_000) -> dict[str, Any]:
        """size, lines, content; binary where there is no content to show."""
        return await self.call("read_file", path=path, start_line=start_line, lines=lines)

    async def write_file(self, path: str, content: str) -> dict[str, Any]:
        return await self.call("write_file", path=path, content=content)

    async def search_files(self, pattern: str = "", path: str = ".", **options: Any) -> dict[str, Any]:
        return await self.call("search_files", pattern=pattern, path=path, **options)

    async def web_search(self, query: str, count: int = 5) -> dict[str, Any]:
        return await self.call("web_search", query=query, count=count)

    async def web_extract(self, url: str, **options: Any) -> dict[str, Any]:
        return await self.call("web_extract", url=url, **options)

    async def browser_open(self, url: str) -> dict[str, Any]:
        return await self.call("browser_open", url=url)

    async def browser_snapshot(self) -> dict[str, Any]:
        return await self.call("browser_snapshot")

    async def browser_click(self, ref: int) -> dict[str, Any]:
        return await self.call("browser_click", ref=ref)

    async def browser_type(self, ref: int, text: str, submit: bool = False) -> dict[str, Any]:
        return await self.call("browser_type", ref=ref, text=text, submit=submit)

    async def browser_back(self) -> dict[str, Any]:
        return await self.call("browser_back")

    async def judge(self, question: str | list[Message], sampling: Sampling | None = None) -> str:
        """What the judge answers, as text; a conversation of its own, without tools.

        Args:
            question: One message of a user, or a whole conversation.
            sampling: Greedy unless it says otherwise.

        Raises:
            PolicyError: It cannot answer. An environment that lets it pass gets an errored rollout.
            ValueError: The caller handed in no judge.
        """
        if self.judge_policy is None:
            raise ValueError("this environment asks a judge, and none was given")
        messages = [user(question)] if isinstance(question, str) else question
        sampling = sampling or Sampling(temperature=0.0)
        async with self.judge_policy.open(f"{self.task_id}/judge", [], sampling) as session:
            completion = await session.complete(messages)
        return completion.message["content"] or ""

    async def upload(self, source: Path | str, target: str) -> None:
        """Copies a file or folder of the host into the sandbox, any bytes, with its modes.

        Raises:
            ToolError: The sandbox failed ("sandbox"), or cannot take it.
            OSError: The host's side cannot be read.
        """
        with tool_errors():
            await (await sandbox_of(self._context())).upload(Path(source), target)

    async def download(self, source: str, target: Path | str, limit: int = DOWNLOAD_LIMIT) -> None:
        """Copies a file or folder of the sandbox to the host as `Sandbox.download` does.

        Args:
            limit: Bytes that are taken; 1 GiB unless it is given.

        Raises:
            ToolError: The sandbox failed ("sandbox"), or has no such file ("missing"), or it is "too_large".
            OSError: The host's side cannot be written.
        """
        with tool_errors():
            await (await sandbox_of(self._context())).download(source, Path(target), limit)

    @asynccontextmanager
    async def fresh(self, paths: Iterable[str]) -> AsyncIterator[ToolContext]:
        """Another sandbox of the same kind with copies of these files and folders only, for a check.

        What a policy left elsewhere, files that a check would load by itself, processes, variables, is not
        there. Relative paths are kept; an absolute one is copied to the same place. What the policy did not
        make, or made as something else than a file or folder, is not there either: the check will say so.

            async with ctx.fresh(["solution.py"]) as clean:
                await clean.upload(TESTS, "test_solution.py")
                verdict = await clean.terminal("python3 -m unittest")

        Raises:
            ToolError: The sandbox failed ("sandbox"), or a copy could not be put into the other one.
        """
        # Not in the folder that is in doubt.
        config = replace(self.config, workdir=None) if self.config else None
        clean = ToolContext(f"{self.task_id}/fresh", self.judge_policy, config)
        try:
            with tempfile.TemporaryDirectory(prefix="rl-cli-fresh-") as folder:
                for number, path in enumerate(paths):
                    held = Path(folder) / str(number)
                    try:
                        await self.download(path, held)
                    except ToolError as error:
                        if error.type in INFRASTRUCTURE:
                            raise
                        continue
                    await clean.upload(held, path)
            yield clean
        finally:
            await clean.cleanup()

    async def prepare(self) -> None:
        """Starts the sandbox now, where the task names an image: one that is missing costs no model call.

        Raises:
            ToolError: It cannot be started ("sandbox").
        """
        if self.config is not None and self.config.image is not None:
            await sandbox_of(self._context())

    async def cleanup(self) -> None:
        """Closes the browser and ends the sandbox, with all that runs there. May be called more than once."""
        try:
            await close_session(self.live)
        finally:
            await self.sandbox.stop()

    def _context(self) -> CallContext:
        return CallContext(
            caller="reward",
            task_id=self.task_id,
            toolsets=implemented(operations=False),
            result_limit=sys.maxsize,
            sandbox=self.sandbox,
            state=self.state,
            live=self.live,
        )
