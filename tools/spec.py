"""What a tool is, who calls it, and what it may raise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from tools.toolsets import OPERATIONS

Risk = Literal["read", "write", "execute", "spend", "leave"]
"""What a call may do: look; change files of ours; run code or start processes; cost money; run code outside
of the sandbox, with all of the person's files and the network."""

Caller = Literal["chat", "rollout", "reward", "batch", "mcp", "cli"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as it was defined with @tool."""

    name: str
    toolset: str
    risk: Risk
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments: an object without additional properties."""
    model: type[BaseModel]
    """Validates the arguments; its field aliases are the parameters' names."""
    function: Callable[..., Any]
    context_parameter: str | None
    """The parameter that receives the CallContext, if there is one."""
    deadline: float | None
    """Seconds a call may take; None leaves it to the caller, math.inf waits as long as it takes."""
    exclusive: bool
    """Never runs at the same time as another call of its turn."""
    estimate: Callable[[CallContext, dict[str, Any]], Estimate] | None = None
    """What a call would take; asked before approval."""
    risk_of: Callable[[CallContext, dict[str, Any]], Risk] | None = None
    """What a call with these arguments may do, where that can be more than `risk`; asked before approval."""
    covers: tuple[str, ...] = ()
    """The tools that an answer for more than one call is about, within the estimate's scope, whatever their
    arguments; empty: this tool, with these arguments only."""

    def schema(self) -> dict[str, Any]:
        """The tool in OpenAI's form."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


@dataclass(frozen=True)
class Estimate:
    """What a call is expected to take, for the person who is asked and for the budget."""

    where: str = "this computer"
    """On what it runs or is paid for."""
    seconds: float | None = None
    """Wall clock; None: cannot be told."""
    gpu_hours: float = 0.0
    """GPUs times hours, at most as far as is known."""
    dollars: float | None = 0.0
    """None: it costs money and the price is not known."""
    basis: str = ""
    """What the figures rest on, in a few words."""
    what: str = ""
    """What would be done, where the arguments alone do not say it."""
    scope: dict[str, str | int] = field(default_factory=dict)
    """What an approval of the call is bound to beside its arguments: text must be the same, and a number not
    larger, in whatever it covers later. Dollars and GPU hours are bound in any case."""


@dataclass(frozen=True)
class ApprovalRequest:
    """A call that wants to be approved."""

    spec: ToolSpec
    arguments: dict[str, Any]
    """Validated, with defaults."""
    estimate: Estimate | None = None
    """None where the tool gives none."""


@dataclass(frozen=True)
class Verdict:
    """The answer to a request for approval."""

    allow: bool
    reason: str = ""
    """Why not; the model reads it."""


FINAL_ANSWER = "final_answer"
"""Key of a context's state under which a tool leaves what the person is told: the turn ends with that."""

Choice = Literal["continue", "stop", "change", "ask"]
RULES = "rules"
"""Decides where no model does."""


@dataclass(frozen=True)
class Decision:
    """What is to be done about a run now."""

    what: Choice
    reason: str
    """One line, with the figures that decided."""
    message: str = ""
    """For the person: the question, the change that is proposed, or at the end of a run how it went."""
    by: str = RULES
    """Who decided: a model's name, or RULES."""


class NoDecision(Exception):
    """A judge could not be asked, or its answer could not be read.

    Args:
        why: One line for a person.
        said: What it said to the person instead, in prose; at the end of a run that is an answer too.
    """

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(why)
        self.said = said


Judge = Callable[[str], Coroutine[Any, Any, Decision]]
"""Judges a run by its digest; raises NoDecision."""


class ToolError(Exception):
    """A failure that the model should read and may mend.

    Args:
        type: A short snake_case name that programs can compare.
        message: What went wrong, naming the thing.
        hint: What to do instead, or None.
    """

    def __init__(self, type: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.type = type
        self.message = message
        self.hint = hint


@dataclass
class CallContext:
    """Who calls, and what the call may do. A tool receives a copy that shares `state` and `live`."""

    caller: Caller
    task_id: str
    """Calls with the same task_id share a sandbox."""
    toolsets: tuple[str, ...]
    """Only their tools can be called."""
    approve: Callable[[ApprovalRequest], Awaitable[Verdict]] | None = None
    """Asked before every call; None see `tools.dispatcher`."""
    deadline: float | None = None
    """No call goes on past this moment of time.monotonic()."""
    call_timeout: float = 300
    """Seconds a call may take, where its tool does not declare its own."""
    result_limit: int = 40_000
    """Characters of a result; longer ones keep head and tail."""
    overflow_dir: Path | None = None
    """Where the whole of a longer result is written; None keeps no copy."""
    state: dict[str, Any] = field(default_factory=dict)
    """The session's own; shared by all its calls. Plain JSON: it is kept with the session."""
    live: dict[str, Any] = field(default_factory=dict)
    """What lives as long as the task, such as its shell and its browser; shared by all its calls."""
    on_progress: Callable[[dict[str, Any]], None] | None = None
    interrupted: asyncio.Event | None = None
    """Set when the person at the keyboard wants attention; waiting tools return early."""
    judge: Judge | None = None
    """Asked about a run at its checks, so that a tool can wait through them; None: it returns at each."""
    sandbox: Any = None
    """A `tools.everyday.task_sandbox.TaskSandbox`, or a started `tools.sandboxes.base.Sandbox`."""
    file_roots: tuple[Path, ...] = ()
    """Folders of this computer in which file tools act instead of in a sandbox."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Per call: set when its result is no longer wanted. A sync tool that waits should look at it."""

    def __post_init__(self) -> None:
        self.toolsets = tuple(self.toolsets)
        if self.caller == "rollout" and (taboo := OPERATIONS & set(self.toolsets)):
            raise ValueError(
                f"a rollout is never offered the operations toolsets: {', '.join(sorted(taboo))}"
            )
