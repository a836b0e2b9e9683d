"""What the renderers insert between sampled turns is what the template would have written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.parsers.base import Parsed, ParsedCall
from environments.parsers.families import FAMILIES
from environments.policies.base import PolicyError
from environments.policies.renderers import ChatTemplateRenderer, TinyRenderer
from rl_cli.core.messages import Message, assistant, system, tool_call, tool_result, user
from tests.environments.tiny import CHAT_TEMPLATE, chat_tokenizer

pytestmark = pytest.mark.train
TOKENIZER: Any = None
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {}}}]


def tokenizer() -> Any:
    global TOKENIZER
    TOKENIZER = TOKENIZER or chat_tokenizer()
    return TOKENIZER


def template(messages: list[Message], tools: Any) -> str:
    plain: list[dict[str, Any]] = []
    for message in messages:
        plain.append({"role": message["role"], "content": message["content"] or ""})
        if "tool_calls" in message:
            functions = [call["function"] for call in message["tool_calls"]]
            plain[-1]["tool_calls"] = [
                {"function": {"name": f["name"], "arguments": json.loads(f["arguments"])}} for f in functions
            ]
    text: str = tokenizer().apply_chat_template(
        plain, tools=tools, add_generation_prompt=True, tokenize=False
    )
    return text


text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="<>|"), max_size=20)
turns = st.lists(st.tuples(text, st.integers(0, 2), st.booleans()), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(text, turns, st.sampled_from([None, TOOLS]))
def test_growing_a_conversation_writes_what_the_template_writes(
    opening: str, replies: Any, tools: Any
) -> None:
    """Each reply: its text, how many tools it calls (0: the person speaks next), and whether it was cut."""
    renderer = ChatTemplateRenderer(tokenizer())
    (end,) = tokenizer().encode("<|im_end|>", add_special_tokens=False)
    assert end in renderer.stop_ids(tools or [])
    messages: list[Message] = [system("be brief"), user(opening)]
    ids = renderer.first(messages, tools or [])
    for said, count, cut in replies:
        calls = [
            tool_call(f"c{i}", "add", json.dumps({"a": i, "t": said}, ensure_ascii=False))
            for i in range(count)
        ]
        message = assistant(said, calls)
        written = "".join(
            f'<tool_call>{{"name": "add", "arguments": {c["function"]["arguments"]}}}</tool_call>'
            for c in calls
        )
        sampled = tokenizer().encode(said + written, add_special_tokens=False) + ([] if cut else [end])
        new = [tool_result(c, '{"ok": true}') for c in calls] or [user(said[::-1])]
        before = [*messages, message]
        ids += sampled + renderer.following(before, new, (sampled or [-1])[-1], tools or [])
        messages = before + new
    assert tokenizer().decode(ids) == template(messages, tools)


def test_a_turn_is_read_without_its_stop_token() -> None:
    renderer = ChatTemplateRenderer(tokenizer())
    written = (
        '<think>hm</think>Adding.<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call><|im_end|>'
    )
    parsed = renderer.read(tokenizer().encode(written, add_special_tokens=False), TOOLS)
    assert (parsed.content, parsed.reasoning) == ("Adding.", "hm")
    assert [(c.name, c.arguments) for c in parsed.tool_calls] == [("add", '{"a": 1}')]


def read(written: str, template: str = CHAT_TEMPLATE, tools: Any = TOOLS, name: str = "") -> Parsed:
    made = chat_tokenizer()
    made.chat_template, made.name_or_path = template, name
    return ChatTemplateRenderer(made).read(made.encode(written, add_special_tokens=False), tools)


CODER = CHAT_TEMPLATE + "{# <tool_call><function=NAME><parameter=KEY> #}"
PLAIN = CHAT_TEMPLATE.replace("tool_call>", "call>")


@pytest.mark.parametrize(
    ("family", "template", "name"),
    [
        ("hermes", CHAT_TEMPLATE, "models/Qwen3-Coder-30B"),  # what the model is shown decides
        ("qwen3_coder", CODER, "runs/a/checkpoints/step-30"),
        ("mistral", PLAIN + "{# [TOOL_CALLS] #}", ""),
        ("glm45", CHAT_TEMPLATE + "{# <arg_key> #}", ""),
        ("deepseek_v31", PLAIN, "deepseek-ai/DeepSeek-V3.1"),
        ("hermes", PLAIN, "my-fine-tune"),
    ],
)
def test_turns_are_read_in_the_form_that_the_template_or_the_name_tells(
    family: str, template: str, name: str
) -> None:
    calls = [ParsedCall("add", '{"a": "one"}')]
    parsed = read(f"Adding.\n{FAMILIES[family].render(calls)}", template, name=name)
    assert parsed.content == "Adding."
    assert [(call.name, json.loads(call.arguments)) for call in parsed.tool_calls] == [("add", {"a": "one"})]


def test_arguments_have_the_types_of_the_offered_tools() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    written = FAMILIES["qwen3_coder"].render([ParsedCall("add", '{"a": 1}')])
    tools = [{"type": "function", "function": {"name": "add", "parameters": schema}}]
    assert json.loads(read(written, CODER, tools).tool_calls[0].arguments) == {"a": "1"}


def test_without_tools_there_are_no_calls() -> None:
    written = FAMILIES["hermes"].render([ParsedCall("add", "{}")])
    parsed = read(f"<think>hm</think>{written}", tools=[])
    assert (parsed.reasoning, parsed.content, parsed.tool_calls) == ("hm", written, [])


def test_reasoning_that_the_prompt_opens_holds_no_calls() -> None:
    opens = CHAT_TEMPLATE.replace(
        "<|im_start|>assistant\n' }}{% endif %}", "<|im_start|>assistant\n<think>\n' }}{% endif %}"
    )
    assert opens != CHAT_TEMPLATE
    call = FAMILIES["hermes"].render([ParsedCall("add", "{}")])
    whole = read(f"Perhaps {call}\n</think>\n\nNo.", opens)
    assert (whole.reasoning, whole.content, whole.tool_calls) == (f"Perhaps {call}", "No.", [])
    cut = read(f"Perhaps {call}", opens)
    assert (cut.reasoning, cut.content, cut.tool_calls) == (f"Perhaps {call}", None, [])


def test_text_between_calls_is_content_and_a_mention_no_error() -> None:
    call = FAMILIES["hermes"].render([ParsedCall("add", "{}")])
    parsed = read(f"A `<tool_call>` first.\n{call}\nThen:\n{call}")
    assert (len(parsed.tool_calls), parsed.errors) == (2, [])
    assert (parsed.content or "").split() == ["A", "`<tool_call>`", "first.", "Then:"]


def test_a_template_that_rewrites_the_past_is_refused() -> None:
    odd = chat_tokenizer()
    odd.chat_template = CHAT_TEMPLATE.replace(
        "'<|im_end|>\n' }}{% endif %}{% endfor %}",
        "('<|im_end|>\n' if loop.last or m.role != 'assistant' else '!') }}{% endif %}{% endfor %}",
    )
    renderer = ChatTemplateRenderer(odd)
    with pytest.raises(PolicyError, match="template"):
        renderer.following([user("a"), assistant("b")], [user("c")], 5, [])


@pytest.fixture(scope="module")
def tiny() -> tuple[Any, TinyRenderer]:
    from rl_cli.training.tiny_model import build_tokenizer

    made = build_tokenizer(["Ben has 6 nuts. 5 * 4 = 20 #### 20", "<call> 5 * 4</call> 20"])
    return made, TinyRenderer(made)


def test_the_tiny_form_reads_and_writes_calls(tiny: Any) -> None:
    made, renderer = tiny

    def ids(written: str) -> list[int]:
        return list(made.encode(written, add_special_tokens=False))

    assert renderer.first([user("Ben has 6 nuts.")], TOOLS) == ids("Ben has 6 nuts.")
    turn = ids("<call> 5 * 4</call>")
    assert turn[-1] in renderer.stop_ids(TOOLS)
    assert turn[-1] not in renderer.stop_ids([])
    parsed = renderer.read(turn, TOOLS)
    assert [(c.name, json.loads(c.arguments)) for c in parsed.tool_calls] == [
        ("calculator", {"expression": "5 * 4"})
    ]
    call = tool_call("c", "calculator", "{}")
    good = tool_result(call, '{"ok": true, "result": 20}')
    assert renderer.following([], [good], turn[-1], TOOLS) == ids(" 20")
    bad = tool_result(call, '{"ok": false, "error": {"type": "x", "message": "y"}}')
    assert made.decode(renderer.following([], [bad], turn[-1], TOOLS)) == " error"


def test_the_tiny_form_without_a_whole_call_is_text(tiny: Any) -> None:
    made, renderer = tiny
    final = [*made.encode(" #### 20", add_special_tokens=False), made.eos_token_id]
    assert renderer.read(final, TOOLS).content == " #### 20"
    lone = renderer.read(made.encode(" 20</call>", add_special_tokens=False), TOOLS)
    assert (lone.tool_calls, len(lone.errors)) == ([], 1)
    assert renderer.read(made.encode("<call> 1", add_special_tokens=False), TOOLS).tool_calls == []
