"""A gpt turn, and the tool turn with its results, written and read.

A gpt turn holds `<think>`, the answer, `<tool_call>` blocks. It has no ids: the results, which come in the
order of the calls, tell them. Where they do not (a call without a result, another order), the blocks have an
`id`. The results of one gpt turn are one tool turn of `<tool_response>` blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rl_cli.core.messages import Message, ToolCall, assistant, tool_call
from rl_cli.data.blocks import CallBlock, ResponseBlock, read_call, read_response, write_call, write_response
from rl_cli.data.markup import escape_text, unescape_text
from rl_cli.data.thinking import first_block


def write_gpt(message: Message, results: Sequence[Message]) -> str:
    reasoning, content = message.get("reasoning", ""), escape_text(message["content"] or "")
    calls = message.get("tool_calls", [])
    answered = [(result["tool_call_id"], result["name"]) for result in results]
    told = [(call["id"], call["function"]["name"]) for call in calls] == answered
    blocks = (
        CallBlock(call["function"]["name"], call["function"]["arguments"], None if told else call["id"])
        for call in calls
    )
    thought = f"{escape_text(reasoning)}\n" if reasoning else ""
    gap = "\n" if content and calls else ""
    written = "\n".join(f"<tool_call>\n{write_call(block)}\n</tool_call>" for block in blocks)
    return f"<think>\n{thought}</think>\n{content}{gap}{written}"


def write_results(results: Sequence[Message]) -> str:
    blocks = (
        ResponseBlock(result["tool_call_id"], result["name"], result["content"] or "") for result in results
    )
    return "\n".join(f"<tool_response>\n{write_response(block)}\n</tool_response>" for block in blocks)


def read_gpt(value: str, results: str | None, new_id: str) -> Iterator[Message]:
    """A gpt turn and the tool turn that follows it, if one does.

    Args:
        value: The gpt turn.
        results: The tool turn.
        new_id: Begins the ids of calls that have none.

    Raises:
        ValueError: They are not in the form that is written here.
    """
    reasoning, body = _split_thought(value)
    content, blocks = _split_blocks(body, "tool_call")
    calls = [read_call(block) for block in blocks]
    between, blocks = _split_blocks(results or "", "tool_response")
    answers = [read_response(block) for block in blocks]
    if between.strip() or (results is not None and not answers):
        raise ValueError("a tool turn follows that is not results alone")
    ids = _ids(calls, answers, new_id)
    content = unescape_text(content.removesuffix("\n") if calls else content)
    made: list[ToolCall] = [
        tool_call(call_id, call.name, call.arguments) for call_id, call in zip(ids, calls, strict=True)
    ]
    message = assistant(content or (None if calls else ""), made)
    if reasoning:
        message["reasoning"] = unescape_text(reasoning)
    yield message
    for number, answer in enumerate(answers):
        yield {
            "role": "tool",
            "content": answer.content,
            "tool_call_id": answer.id or ids[number],
            "name": answer.name,
        }


def _ids(calls: Sequence[CallBlock], answers: Sequence[ResponseBlock], new_id: str) -> list[str]:
    """The calls' ids: their own, else those of the results, which then answer one call each, in order."""
    if any(call.id is not None for call in calls):
        own = [call.id or "" for call in calls]
        if "" in own or Counter(answer.id for answer in answers) - Counter(own):
            raise ValueError("calls without an id beside others, or results that are not one for one call")
        return own
    made = [f"{new_id}_{number}" for number in range(1, len(calls) + 1)]
    if not answers:
        return made
    if [call.name for call in calls] != [answer.name for answer in answers]:
        raise ValueError("results that are not those of its calls, in their order")
    return [answer.id or name for answer, name in zip(answers, made, strict=True)]


def _split_thought(value: str) -> tuple[str, str]:
    thought, body = first_block(value)
    if thought is None:
        return "", value
    return thought.removeprefix("\n").removesuffix("\n"), body.removeprefix("\n")


def _split_blocks(text: str, tag: str) -> tuple[str, list[str]]:
    """What stands before the first block, and what is in the blocks; nothing may stand elsewhere."""
    before, *rest = text.split(f"<{tag}>")
    pieces = [piece.partition(f"</{tag}>") for piece in rest]
    if f"</{tag}>" in before or any(not closer or after.strip() for _, closer, after in pieces):
        raise ValueError(f"<{tag}> and </{tag}> that do not pair, or text after one")
    return before, [block for block, _, _ in pieces]
