from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.json_text import to_json
from rl_cli.core.printable import printable, printable_json

CONTROLS = "\x1b]0;title\x07 \x9b2J \u202e \u2066 \x7f \u200f"
values = st.recursive(
    st.text() | st.sampled_from(CONTROLS) | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def test_no_control_character_is_printed() -> None:
    assert not set(printable(CONTROLS)) & set(CONTROLS.replace(" ", "")) - set("]0;title2J")


@given(values)
def test_json_for_a_terminal_says_the_same_and_holds_nothing_it_would_obey(value: object) -> None:
    text = to_json(value)
    shown = printable_json(text)
    assert json.loads(shown) == json.loads(text)
    assert all(c.isprintable() for c in shown)
