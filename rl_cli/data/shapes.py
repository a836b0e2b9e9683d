"""Messages as providers and files write them -> canonical ones.

Taken: OpenAI's chat messages with parts, `reasoning_content`, `reasoning_details`, the older `function_call`;
Anthropic's blocks; LangChain's calls, which have `args` and may stand beside such blocks; arguments and
results that are objects instead of text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, ToolCall, tool_call
from rl_cli.data.blocks import valid_arguments
from rl_cli.data.errors import Unconvertible
from rl_cli.data.markup import unescape_json
from rl_cli.data.parts import THINKING_PARTS, json_of, parts_of, spoken, text_of
from rl_cli.data.strict_json import repair_escapes
from rl_cli.data.thinking import has_thinking_tag, join_thinking, split_thinking

ARGUMENTS = ("arguments", "args", "input", "parameters")
"""What the arguments of a call are named."""


def read_message(message: Any, marks: set[str]) -> Iterator[Message]:
    """The canonical messages that one message stands for; results may lack id and name.

    Args:
        message: One of `messages`, from JSON.
        marks: Gets what is worth knowing about it.

    Raises:
        Unconvertible: It is no message.
    """
    if not isinstance(message, dict):
        raise Unconvertible("a message is no object")
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        yield {"role": "system", "content": spoken(content)}
    elif role == "user":
        yield from _user(content)
    elif role == "assistant":
        yield _assistant(message, content, marks)
    elif role in ("tool", "function"):
        yield _result(message.get("tool_call_id"), message.get("name"), content)
    else:
        raise Unconvertible(f"unknown role {str(role)[:40]!r}")


def _user(content: Any) -> Iterator[Message]:
    results = parts_of(content, "tool_result")
    for part in results:
        yield _result(part.get("tool_use_id"), None, part.get("content"))
    said = spoken(content)
    if said or not results:
        yield {"role": "user", "content": said}


def _result(call_id: Any, name: Any, content: Any) -> Message:
    result: Message = {"role": "tool", "content": text_of(content)}
    if told := _id(call_id):
        result["tool_call_id"] = told
    if isinstance(name, str) and name:
        result["name"] = repair_surrogates(name)
    return result


def _assistant(message: dict[str, Any], content: Any, marks: set[str]) -> Message:
    fields = list(_thinking_fields(message, content))
    audio = message.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    said = spoken(content) or text_of(message.get("refusal")) or text_of(transcript)
    blocks, text, unclosed = split_thinking(said, opened=not fields)
    reasoning = join_thinking([*fields, *(block.strip() for block in blocks)])
    calls = list(_calls(message, content, marks))
    if unclosed:
        marks.add("unclosed_reasoning")
    if has_thinking_tag(text):
        marks.add("thinking_in_text")
    if "<tool_call>" in text and not calls:
        marks.add("call_in_text")
    canonical: Message = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        canonical["reasoning"] = reasoning
    if calls:
        canonical["tool_calls"] = calls
    return canonical


def _thinking_fields(message: dict[str, Any], content: Any) -> Iterator[str]:
    """Thinking that is not in the content, without tags around it."""
    fields = [message.get("reasoning"), message.get("reasoning_content")]
    details = message.get("reasoning_details")
    if isinstance(details, list):
        fields.append("".join(map(_detail_text, details)))
    fields += [part.get(str(part["type"])) for part in parts_of(content, *THINKING_PARTS)]
    for field in fields:
        text = text_of(field)
        if text.strip():
            yield _without_tags(text)


def _without_tags(thinking: str) -> str:
    """The text in the tags around it; all of it where tags in tags would be left: they are meant."""
    blocks, rest, _ = split_thinking(thinking)
    inner = "\n\n".join(filter(str.strip, [*blocks, rest])).strip()
    return inner if blocks and not split_thinking(inner)[0] else thinking


def _detail_text(detail: Any) -> str:
    texts = [detail.get(k) for k in ("text", "summary")] if isinstance(detail, dict) else []
    return next((text for text in texts if isinstance(text, str)), "")


def _calls(message: dict[str, Any], content: Any, marks: set[str]) -> Iterator[ToolCall]:
    calls = message.get("tool_calls") or []
    older = message.get("function_call")
    if not isinstance(calls, list):
        raise Unconvertible("tool_calls is no list")
    for call in [*calls, *([{"function": older}] if older else [])]:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise Unconvertible("a call without a function")
        arguments = next((function[key] for key in ARGUMENTS if key in function), None)
        yield _call(call.get("id"), function.get("name"), arguments, marks)
    told = {_id(call.get("id")) for call in calls} - {""}
    for part in parts_of(content, "tool_use"):
        if _id(part.get("id")) not in told:
            yield _call(part.get("id"), part.get("name"), part.get("input"), marks)


def _call(call_id: Any, name: Any, arguments: Any, marks: set[str]) -> ToolCall:
    if not isinstance(name, str) or not name:
        raise Unconvertible("a call without a name")
    text = text_of(arguments) if isinstance(arguments, str | None) else json_of(arguments)
    text = "{}" if text.strip() in ("", "null") else text  # the dispatcher takes both for no arguments
    readable = unescape_json(repair_escapes(text))
    if valid_arguments(readable):
        text = readable
    else:
        marks.add("invalid_arguments")
    return tool_call(_id(call_id), repair_surrogates(name), text)


def _id(value: Any) -> str:
    """The id of a call; empty where there is none. Numbers are ids too: a result names them."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unconvertible("an id of a call that is neither a text nor a whole number")
    return repair_surrogates(str(value))
