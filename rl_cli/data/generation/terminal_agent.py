"""`--agent terminal`: an agent that has one terminal, and says when it is done.

It finishes with the tool `finish`. Models that were trained on mini-swe-agent print a line instead, as the
first of a command's output or in their text, with the answer below it; that is taken for the same.
"""

from __future__ import annotations

from typing import Any

from environments.agent_loop import Stop, StopReason
from rl_cli.core.messages import Message
from tools.dispatcher import CallContext, tool
from tools.everyday import terminal as everyday
from tools.everyday.task_sandbox import confinement

TOOLSET = "single_terminal"
FINAL_LINE = "MINI_SWE_AGENT_FINAL_OUTPUT"
ANSWER = "finished_with"
"""Key of a context's state: the answer of an agent that has finished."""


@tool(
    toolset=TOOLSET,
    risk="execute",
    deadline=everyday.MOST_SECONDS + everyday.START_SECONDS,
    exclusive=True,
    estimate=confinement,
)
async def bash(
    command: str,
    context: CallContext,
    timeout: float = everyday.DEFAULT_SECONDS,  # noqa: ASYNC109 (a partial result, no exception)
) -> dict[str, Any]:
    """Runs a shell command and returns its exit code and output.

    The working folder and exported variables persist from one command to the next. There is no terminal and
    no input. Of very long output the beginning and the end are returned.

    Args:
        command: For bash where there is one, else sh.
        timeout: Seconds until the command and all that it started are ended, at most 1800.
    """
    result = await everyday.terminal(command, context, timeout)
    if (answer := final_output(result["stdout"])) is not None:
        context.state[ANSWER] = answer
    return result


@tool(toolset=TOOLSET)
def finish(answer: str, context: CallContext) -> dict[str, Any]:
    """Ends the task. Call it once, when everything is done.

    Args:
        answer: The result of the task, or what was done.
    """
    context.state[ANSWER] = answer
    return {}


def final_output(text: str) -> str | None:
    """What follows the final line; None where the text does not begin with it."""
    first, _, rest = text.lstrip().partition("\n")
    return rest.strip() if first.strip() == FINAL_LINE else None


def stop_of(context: CallContext, messages: list[Message]) -> Stop | None:
    """FINISHED once the agent has said so: by a call, a command's output, or its last reply."""
    said = _last_said(messages)
    finished = ANSWER in context.state or final_output(said) is not None
    return Stop(StopReason.FINISHED) if finished else None


def answer_of(context: CallContext, messages: list[Message]) -> str:
    """The answer of an agent that has stopped; empty where there is none."""
    if ANSWER in context.state:
        return str(context.state[ANSWER])
    said = _last_said(messages)
    answer = final_output(said)
    return said if answer is None else answer


def _last_said(messages: list[Message]) -> str:
    return next((m["content"] or "" for m in reversed(messages) if m["role"] == "assistant"), "")
