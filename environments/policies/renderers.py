"""Messages to token ids and back, for token-exact policies. What was sampled is never tokenised again.

A renderer gives the ids of the first prompt, then only the ids that stand between one sampled turn and the
next.
"""

from __future__ import annotations

import json
import secrets
from functools import lru_cache
from typing import Any, Protocol

from environments.parsers.base import Parsed, ParsedCall, ParseError
from environments.parsers.parser import Family
from environments.policies.base import PolicyError
from environments.policies.model_family import family_for
from environments.policies.turn_text import read_turn
from rl_cli.core.messages import Message, ToolCall, assistant, tool_call, user

Tools = list[dict[str, Any]]


class Renderer(Protocol):
    def stop_ids(self, tools: Tools) -> frozenset[int]:
        """Sampling one of these ends the model's turn."""
        ...

    def first(self, messages: list[Message], tools: Tools) -> list[int]:
        """The prompt, up to where the model writes."""
        ...

    def following(self, before: list[Message], new: list[Message], last_id: int, tools: Tools) -> list[int]:
        """What stands between a sampled turn and the next one.

        Args:
            before: The conversation so far; ends with the assistant message of the sampled turn.
            new: The messages after it.
            last_id: The last sampled id.
        """
        ...

    def read(self, ids: list[int], tools: Tools) -> Parsed:
        """A sampled turn as text and calls."""
        ...


class TinyRenderer:
    """For the tiny model: plain text, `<call> 5 * 4</call>` for the calculator, its result after that."""

    CALL, END_CALL = "<call>", "</call>"
    TOOL, ARGUMENT = "calculator", "expression"

    def __init__(self, tokenizer: Any) -> None:
        """Takes the tokenizer of rl_cli.training.tiny_model, or a fast one with `</call>` as one token."""
        self._backend = tokenizer.backend_tokenizer
        self._eos: int = tokenizer.eos_token_id
        self._end_call: int = tokenizer.convert_tokens_to_ids(self.END_CALL)
        self._encode = lru_cache(maxsize=4096)(self._encode_text)  # a group's prompts are all the same

    def stop_ids(self, tools: Tools) -> frozenset[int]:
        return frozenset({self._eos, self._end_call} if tools else {self._eos})

    def first(self, messages: list[Message], tools: Tools) -> list[int]:
        return list(self._encode("\n".join(m["content"] or "" for m in messages)))

    def following(self, before: list[Message], new: list[Message], last_id: int, tools: Tools) -> list[int]:
        return list(self._encode("".join(self._text(message) for message in new)))

    def read(self, ids: list[int], tools: Tools) -> Parsed:
        text: str = self._backend.decode([i for i in ids if i != self._eos], skip_special_tokens=False)
        if not (tools and text.endswith(self.END_CALL)):
            return Parsed(text)
        before, opened, expression = text.removesuffix(self.END_CALL).rpartition(self.CALL)
        if not opened:
            return Parsed(text, errors=[ParseError(0, "</call> without <call>")])
        arguments = json.dumps({self.ARGUMENT: expression.strip()})
        return Parsed(before, tool_calls=[ParsedCall(self.TOOL, arguments)])

    def _text(self, message: Message) -> str:
        content = message["content"] or ""
        if message["role"] != "tool":
            return content
        result = json.loads(content)
        return f" {result['result']}" if result.get("ok") else " error"

    def _encode_text(self, text: str) -> tuple[int, ...]:
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)


class ChatTemplateRenderer:
    """For Hugging Face models: the tokenizer's chat template, and turns in the form of the model's family."""

    def __init__(
        self,
        tokenizer: Any,
        family: Family | None = None,
        stop_ids: frozenset[int] | None = None,
    ) -> None:
        """Args:
        tokenizer: With a chat template that allows a conversation to grow at its end.
        family: How turns are read; None takes what the template, or else the tokenizer's name, tells.
        stop_ids: Besides the token with which the template closes a turn; None takes the tokenizer's eos.
        """
        self._tokenizer = tokenizer
        self._family = family or family_for(tokenizer.name_or_path, str(tokenizer.chat_template))
        self._marker = f"reply{secrets.token_hex(8)}"
        closing = self._ids(self._after_reply([], [], []))
        special = set(tokenizer.all_special_ids)
        self._stop_ids = frozenset(
            ([tokenizer.eos_token_id] if stop_ids is None else list(stop_ids))
            + [token for token in closing[:1] if token in special]
        ) - {None}
        prompt = self._render([user("?")], [], ready=True).rstrip()
        self._opens_reasoning = any(prompt.endswith(block.opener.rstrip()) for block in self._family.thinking)

    def stop_ids(self, tools: Tools) -> frozenset[int]:
        return self._stop_ids

    def first(self, messages: list[Message], tools: Tools) -> list[int]:
        return self._ids(self._render(messages, tools, ready=True))

    def following(self, before: list[Message], new: list[Message], last_id: int, tools: Tools) -> list[int]:
        """Renders a stand-in for the sampled turn and the new messages, and takes what follows the stand-in.

        Raises:
            PolicyError: the template does not close the assistant's turn in the same way when more follows.
        """
        closing = self._after_reply([], [], tools)
        calls = [
            tool_call(call["id"], call["function"]["name"], "{}") for call in before[-1].get("tool_calls", [])
        ]
        alone = self._after_reply(calls, [], tools)
        followed = self._after_reply(calls, new, tools)
        if not (alone.endswith(closing) and followed.startswith(alone)):
            raise PolicyError("the chat template closes a turn differently when more follows")
        ids = self._ids(followed[len(alone) - len(closing) :])
        return ids[1:] if ids and ids[0] == last_id and last_id in self._stop_ids else ids

    def read(self, ids: list[int], tools: Tools) -> Parsed:
        text = self._tokenizer.decode([i for i in ids if i not in self._stop_ids], skip_special_tokens=False)
        return read_turn(self._family, text, tools, self._opens_reasoning)

    def _after_reply(self, calls: list[ToolCall], new: list[Message], tools: Tools) -> str:
        """What the template writes after the content of an assistant message with these calls, and then."""
        text = self._render([user("?"), assistant(self._marker, calls), *new], tools, ready=bool(new))
        return text[text.rindex(self._marker) + len(self._marker) :]

    def _render(self, messages: list[Message], tools: Tools, ready: bool) -> str:
        plain = [_for_template(message) for message in messages]
        text: str = self._tokenizer.apply_chat_template(
            plain, tools=tools or None, add_generation_prompt=ready, tokenize=False
        )
        return text

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))


def _for_template(message: Message) -> dict[str, Any]:
    """Templates expect text and arguments as objects, as Hugging Face documents them."""
    plain: dict[str, Any] = {k: v for k, v in message.items() if k != "provider_state"}
    plain["content"] = message["content"] or ""
    if "tool_calls" in message:
        plain["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _as_object(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    return plain


def _as_object(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
