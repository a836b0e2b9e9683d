"""`rl-cli parse`: what a model wrote -> content, reasoning, tool calls, errors, as JSON."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl_cli.cli.app import single
from rl_cli.cli.jsonl import convert_lines, print_exactly, texts_of, with_other_fields
from rl_cli.core.errors import BadUsage, did_you_mean

if TYPE_CHECKING:
    from environments.parsers.base import Parsed
    from environments.parsers.events import Event
    from environments.parsers.parser import Family

PIECE = 65_536
"""The most bytes of a text that are read at once."""
READ = ("family", "variant", "model", "text", "tools", "in_reasoning")
"""The fields of a line that tell what to parse, and how; the others are kept."""

app = single()


@app.command()
def parse(
    family: Annotated[str, typer.Option(help="The family of the model, e.g. hermes.")] = "",
    variant: Annotated[str, typer.Option(help="Of mistral: pre_v11; of llama: pythonic.")] = "",
    model: Annotated[str, typer.Option(help="Instead of a family: the model's name tells it.")] = "",
    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The tools that were offered: a JSON list of OpenAI schemas."),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print what is found as the text comes; last, the result.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the families, and read nothing.")] = False,
    in_reasoning: Annotated[
        bool, typer.Option("--in-reasoning", help="The prompt has opened a block of reasoning.")
    ] = False,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            help='Read lines {"family" or "model", "text"[, "variant", "tools", "in_reasoning"]} instead; '
            "their other fields are kept.",
        ),
    ] = False,
) -> None:
    """Take what a model wrote, given on standard input, apart into content, reasoning and tool calls.

    It is printed as it was written: nothing in it is masked.
    """
    others = bool(family or variant or model or tools or stream or in_reasoning)
    if listed:
        if jsonl or others:
            raise BadUsage("--list goes with no other option", "it reads nothing")
        from environments.parsers.families import FAMILIES

        print("\n".join(FAMILIES))
        return
    if jsonl and others:
        raise BadUsage("--jsonl goes with no other option", "each line has its own family and tools")
    if jsonl:
        convert_lines(_parse_row)
        return
    chosen, offered = _family(family, variant, model), _offered(tools) if tools else None
    if stream:
        _parse_stream(chosen, offered, in_reasoning)
    else:
        print_exactly(_result(chosen.parse("".join(_pieces()), offered, in_reasoning)))


def _parse_stream(family: Family, tools: list[Any] | None, in_reasoning: bool) -> None:
    from environments.parsers.parser import StreamParser

    parser = StreamParser(family, tools, in_reasoning)
    for piece in _pieces():
        for event in parser.feed(piece):
            print_exactly(_event(event))
    for event in parser.end():
        print_exactly(_event(event))
    print_exactly(_result(parser.parsed()))


def _parse_row(row: dict[str, Any]) -> dict[str, Any]:
    kinds = {
        "family": (str | None, "text"),
        "model": (str | None, "text"),
        "variant": (str | None, "text"),
        "tools": (list | str | None, "a list or its JSON text"),
        "in_reasoning": (bool | None, "true or false"),
    }
    for key, (kind, wanted) in kinds.items():
        if not isinstance(row.get(key), kind):
            raise BadUsage(f"'{key}' must be {wanted}")
    (text,) = texts_of(row, ["text"])
    family = _family(row.get("family") or "", row.get("variant") or "", row.get("model") or "", "'{}'")
    tools = _schemas(row.get("tools")) if row.get("tools") is not None else None
    parsed = family.parse(text, tools, bool(row.get("in_reasoning")))
    return with_other_fields(row, READ, _result(parsed))


def _family(name: str, variant: str, model: str, written: str = "--{}") -> Family:
    """The family that is asked for.

    Args:
        written: How an option is written, for errors.

    Raises:
        BadUsage: There is none, or it is not asked for in one way.
    """
    from environments.parsers.families import FAMILIES, family_of, parser_for

    by_family, by_model = written.format("family"), written.format("model")
    if name and model:
        raise BadUsage(f"both {by_family} and {by_model} were given", "give one of them")
    if not name and not model:
        raise BadUsage(
            "name the family of the model that wrote the text",
            f"by {by_family}, or {by_model}; `rl-cli parse --list` lists the families",
        )
    if model and variant:
        raise BadUsage(f"{written.format('variant')} goes with {by_family} only", "a model has one form")
    if model:
        found = parser_for(model)
        if found is None:
            known = did_you_mean(model.rpartition("/")[2], list(FAMILIES))
            raise BadUsage(f"the name '{model}' tells no family", f"give one with {by_family}; {known}")
        return found
    try:
        return family_of(name, variant)
    except LookupError as error:
        if name in FAMILIES:
            raise BadUsage(str(error)) from None
        hint = did_you_mean(name, list(FAMILIES))
        if told := parser_for(name):
            hint = f"the family of such a model is {told.name}; a model's name goes with {by_model}"
        raise BadUsage(f"unknown family '{name}'", hint) from None


def _offered(file: Path) -> list[Any]:
    try:
        found = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{file} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise BadUsage(f"{file} holds no list of tools", "a JSON list of OpenAI schemas is wanted")
    return _schemas(found, f"{file}: ")


def _schemas(tools: Any, where: str = "") -> list[Any]:
    from rl_cli.data.errors import Unconvertible
    from rl_cli.data.trajectory import tool_schemas

    try:
        return tool_schemas(tools)
    except Unconvertible as error:
        raise BadUsage(f"{where}{error}") from None


def _pieces() -> Iterator[str]:
    """Standard input, as it comes, but for a byte order mark; bytes that are no UTF-8 are lone surrogates."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    with open(0, "rb", buffering=0, closefd=False) as file:
        while piece := file.read(PIECE):
            yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _result(parsed: Parsed) -> dict[str, Any]:
    return {
        "content": parsed.content,
        "reasoning": parsed.reasoning,
        "tool_calls": [
            {"id": call.id or f"call_{number}", "name": call.name, "arguments": call.arguments}
            for number, call in enumerate(parsed.tool_calls)
        ],
        "errors": [asdict(error) for error in parsed.errors],
    }


def _event(event: Event) -> dict[str, Any]:
    words = re.findall("[A-Z][a-z]+", type(event).__name__)
    return {"event": "_".join(words).lower(), **asdict(event)}
