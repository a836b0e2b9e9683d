"""Takes a model's turn apart into reasoning, content, calls: a whole text, or one that comes in pieces.

- A block of reasoning opens at the beginning of the text, of a line, right after a call or another block,
  or where a word follows its tag. Calls in it are none. A closing tag alone, at the end of a line or before
  one, makes all that stands before it reasoning: the prompt has opened the block.
- A block that is never closed is reasoning to the end of the text: calls in it are drafts.
- What was begun as a call and is none stays content; reading goes on after what could not be read.
- What follows a stop token is not of this turn: it stays content, and nothing in it is read. A quoted one is
  text.
- The time is linear in the length of the text; per piece it does not grow with what came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from environments.parsers.base import Parsed, ParsedCall
from environments.parsers.events import Event
from environments.parsers.grammar import CannotRender, Context, Grammar
from environments.parsers.json_value import strict_json
from environments.parsers.offered import Tools, offered
from environments.parsers.output import Output
from environments.parsers.reader import Broken, Reader, Step, finish
from environments.parsers.thinking import QUOTES, SCRATCH_PADS, THINK, Thinking, before, closes, opens


@dataclass(frozen=True)
class Family:
    """A model family: its grammar, and what else stands in its turns."""

    name: str
    grammar: Grammar
    thinking: tuple[Thinking, ...] = (THINK,)
    stop_tokens: tuple[str, ...] = ()
    """They end the turn; dropped at the end of the text."""
    stops_between: bool = False
    """They stand between the messages of a turn too."""
    answer: tuple[str, str] | None = None
    """Tags around what it says to the reader, dropped like those of reasoning."""
    silent_between: bool = False
    """Its content ends with the first call; text between two calls is told of in the errors."""

    def parse(self, text: str, tools: Tools | None = None, in_reasoning: bool = False) -> Parsed:
        """Takes a whole turn apart; the arguments are those of `StreamParser`."""
        parser = StreamParser(self, tools, in_reasoning)
        parser._out.events = None
        parser.feed(text)
        parser.end()
        return parser.parsed()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        """The calls as a model of the family writes them.

        Raises:
            CannotRender: One of them is none, or cannot be written so that it is read back the same.
        """
        return self.grammar.render([_strict(call) for call in calls]) if calls else ""


class StreamParser:
    """Reads a turn as it comes.

    Args:
        family: Of the model that writes.
        tools: The tools it was offered; the types of arguments follow their schemas.
        in_reasoning: The prompt has opened a block of reasoning.
    """

    def __init__(self, family: Family, tools: Tools | None = None, in_reasoning: bool = False) -> None:
        self._family = family
        self._reader = Reader()
        self._out = Output(family.silent_between)
        self._out.events = []
        blocks = (one.opener for one in (*family.thinking, *SCRATCH_PADS))
        self._context = Context(
            self._reader, self._out, offered(tools), limits=(*blocks, *family.stop_tokens)
        )
        self._steps = self._turn(in_reasoning)
        self._told = 0
        next(self._steps, None)

    def feed(self, piece: str) -> list[Event]:
        """What the next piece of the text tells.

        Raises:
            TypeError: It is no text.
            ValueError: The text was ended.
        """
        if not isinstance(piece, str):
            raise TypeError(f"what a model wrote must be str, not {type(piece).__name__}")
        if self._reader.ended:
            raise ValueError("the text of this parser has ended: make a new one for the next turn")
        if piece:
            self._reader.feed(piece)
            next(self._steps, None)
        return self._new_events()

    def end(self) -> list[Event]:
        """The text has ended, or was cut off: what was held back is told."""
        if not self._reader.ended:
            self._reader.ended = True
            finish(self._steps)
            self._out.end()
        return self._new_events()

    def parsed(self) -> Parsed:
        """All that was found so far; after `end`, the same as `parse` finds in the whole text."""
        return self._out.parsed()

    def _new_events(self) -> list[Event]:
        events = self._out.events
        if events is None:
            return []
        self._out.events = []
        return events

    def _turn(self, in_reasoning: bool) -> Step[None]:
        reader, family = self._reader, self._family
        blocks = {one.opener: one for one in (*family.thinking, *SCRATCH_PADS)}
        closers = {one.closer: one for one in family.thinking}
        answer, end_of_answer = family.answer or ("", "")
        marks = [*blocks, *closers, *family.stop_tokens, *family.grammar.openers, *(family.answer or ())]
        seen_block, mentioned, in_answer = in_reasoning and bool(family.thinking), False, False
        if seen_block:
            yield from self._block(family.thinking[0])
        after_block = True  # only white space stands between here and the last block, or the beginning
        while True:
            begun = reader.position
            mark = yield from reader.until(marks, self._content)
            after_block = after_block and not reader.between(begun, reader.position).strip()
            if not mark:
                return
            if mark in blocks and (after_block or (yield from opens(reader, blocks[mark]))):
                seen_block = seen_block or not blocks[mark].shown
                after_block = True
                yield from self._block(blocks[mark])
            elif mark in closers and not seen_block and (yield from self._ends_reasoning(mark, mentioned)):
                seen_block = after_block = True
                self._all_was_reasoning(closers[mark])
            elif mark in family.stop_tokens:
                after_block = False
                yield from self._stop_token(mark)
            elif mark in family.grammar.openers:
                self._context.in_text = not after_block
                after_block = yield from self._calls(mark)
            elif mark == (end_of_answer if in_answer else answer) and (in_answer or after_block):
                in_answer = not in_answer
                reader.at += len(mark)
            else:
                after_block = False
                mentioned = mentioned or mark in blocks
                self._pass_as_content(len(mark))

    def _content(self, text: str) -> None:
        self._out.content(text, self._reader.position)

    def _pass_as_content(self, count: int) -> None:
        reader = self._reader
        self._content(reader.text[reader.at : reader.at + count])
        reader.at += count

    def _ends_reasoning(self, closer: str, mentioned: bool) -> Step[bool]:
        # Calls before a closing tag are drafts, wherever it stands.
        return bool(self._out.calls) or (yield from closes(self._reader, closer, mentioned))

    def _all_was_reasoning(self, block: Thinking) -> None:
        reader, out = self._reader, self._out
        out.restart()
        reader.at += len(block.closer)
        if block.shown:
            out.content(reader.between(0, reader.position))
        else:
            out.reasoning(reader.between(0, reader.position - len(block.closer)))

    def _stop_token(self, token: str) -> Step[None]:
        """Drops the token at the end of the text; elsewhere it is content, and so is all that follows it."""
        reader, start = self._reader, self._reader.position
        quoted = before(reader) in QUOTES
        reader.at += len(token)
        yield from reader.space()
        while (yield from reader.accept_any(self._family.stop_tokens)):
            yield from reader.space()
        if (yield from reader.peek()):
            reader.go_to(start)
            if quoted or self._family.stops_between:
                self._pass_as_content(len(token))
                return
            self._out.tell(start, f"{token} has ended the turn: what follows is not read")
            while not reader.ended:
                self._pass_as_content(len(reader.text) - reader.at)
                yield
            self._pass_as_content(len(reader.text) - reader.at)

    def _calls(self, opener: str) -> Step[bool]:
        """Whether what begins here was calls."""
        reader, grammar = self._reader, self._family.grammar
        if grammar.noise and (noise := grammar.noise.match(reader.text, reader.at)):
            self._pass_as_content(noise.end() - reader.at)
            return False
        self._context.passed()
        try:
            yield from grammar.read(opener, self._context)
        except Broken as broken:
            self._context.give_up(broken)
            return False
        return True

    def _block(self, thinking: Thinking) -> Step[None]:
        """A block of reasoning, from its opener (which the prompt may have written) on."""
        reader = self._reader
        say = self._content if thinking.shown else self._out.reasoning
        if (yield from reader.starts(thinking.opener)):
            if thinking.shown:
                say(thinking.opener)
            reader.at += len(thinking.opener)
        closed = yield from reader.until([thinking.closer], say)
        if closed and thinking.shown:
            self._pass_as_content(len(closed))
        elif closed:
            reader.at += len(closed)
            say("\n")


def _strict(call: ParsedCall) -> ParsedCall:
    if not isinstance(call.name, str) or not isinstance(call.arguments, str):
        raise CannotRender("the name and the arguments of a call are text")
    arguments = strict_json(call.arguments.strip())
    if not arguments or not arguments.startswith("{"):
        raise CannotRender(f"the arguments of {call.name!r} are no JSON object")
    if not call.name.strip():
        raise CannotRender("a call has no name")
    return replace(call, arguments=arguments)
