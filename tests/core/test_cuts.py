"""Whatever cuts text for a person, a file or a model leaves no part of a secret in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tests.tools.sample_tools  # noqa: F401
from environments.policies.endpoints.errors import cleaned
from environments.policies.operator.wording import shorten
from environments.tool_calls import CallRecord
from rl_cli.agent import digest
from rl_cli.agent.guards import in_a_circle
from rl_cli.cli.event_lines import call_line, clip, fold
from rl_cli.core.cuts import ends, head, one_line
from rl_cli.core.handwritten import short
from rl_cli.core.messages import assistant, tool_call, user
from rl_cli.core.redaction import forget
from tools.arguments import read_arguments
from tools.dispatcher import CallContext, handle_function_call, tool_specs
from tools.results import as_text
from tools.spec import ToolError

SECRET = "zq81-77ab-qx55-0c0c-very-long-secret-99-of-a-person"
SPACED = "correct horse battery  staple"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ACME_TOKEN", SECRET)
    monkeypatch.setenv("DB_PASSWORD", SPACED)
    forget()
    yield
    forget()


def parts_in(text: str) -> list[str]:
    return [SECRET[i : i + 8] for i in range(len(SECRET) - 7) if SECRET[i : i + 8] in text]


def arguments_error(text: str) -> str:
    with pytest.raises(ToolError) as error:
        read_arguments(tool_specs(["test"])["read_it"], text)
    return error.value.message


def unknown_tool(text: str) -> str:
    context = CallContext("chat", "t", ("test",))
    return asyncio.run(handle_function_call(text, "{}", context))


def stuck(text: str) -> str:
    result = json.dumps({"ok": False, "error": {"type": "failed", "message": text}})
    stop = in_a_circle([CallRecord("c", "read_it", "{}", result, False, 0.1, n, "failed") for n in range(3)])
    assert stop is not None
    return stop.why


def summary(text: str) -> str:
    messages = [user(text), assistant(text, [tool_call("c", "read_it", json.dumps({"what": text}))])]
    return json.dumps(digest.add({}, messages, {"read_it": "execute"}))


PLACES: dict[str, Callable[[str], str]] = {
    "a call's line": lambda text: call_line(tool_call("c", text, json.dumps({"what": text}))),
    "a folded result": lambda text: fold(json.dumps({"ok": True, "file": text, "eval": {"a": text}})),
    "a folded error": lambda text: fold(json.dumps({"ok": False, "error": {"type": "x", "message": text}})),
    "the line at the prompt": lambda text: clip(text, 80),
    "a word in an error": short,
    "a server's words": cleaned,
    "what the operator repeats": shorten,
    "a wrong argument": lambda text: arguments_error(json.dumps({"what": [text]})),
    "an unknown argument": lambda text: arguments_error(json.dumps({text: 1})),
    "arguments that are not JSON": lambda text: arguments_error(f'{{"what": {text}'),
    "arguments that break off": lambda text: arguments_error(f'{{"what": "{text}" "'),
    "an unknown tool": unknown_tool,
    "why the assistant is stuck": stuck,
    "a summary": summary,
    "a long result": lambda text: as_text({"ok": True, "a": text + "x" * 900, "b": text}, 600, None, "t"),
    "a result of many rows": lambda text: as_text({"ok": True, "a": [text] * 90}, 600, None, "t"),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_part_of_a_secret_is_left_where_text_is_cut(place: str) -> None:
    for before in range(0, 420, 7):
        assert parts_in(PLACES[place]("a " * (before // 2) + SECRET + " b" * 90)) == []


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 150))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cuts_keep_to_their_length_and_hold_no_part_of_a_secret(before: str, after: str, limit: int) -> None:
    text = f"{before} {SECRET} {after}"
    for cut in (one_line(text, limit), head(text, limit)):
        assert len(cut) <= max(1, limit)
        assert parts_in(cut) == []
    if limit < len(text):
        assert parts_in(ends(text, limit)) == []


def test_a_secret_with_spaces_is_masked_before_the_spaces_are_joined() -> None:
    assert one_line(f"it is\n{SPACED}", 60) == "it is [redacted]"
    assert short(f"it is\n{SPACED}") == "it is [redacted]"
    assert cleaned(f"it is\n{SPACED}") == "it is [redacted]"


def test_what_fits_is_not_touched() -> None:
    assert one_line("a \n b", 10) == "a b"
    assert one_line("a" * 10, 10) == "a" * 10
    assert one_line("a" * 11, 10) == "a" * 9 + "…"
    assert head("a\nb", 10) == "a\nb"
