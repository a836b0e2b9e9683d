"""What counts as personal data, and what only looks like it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.data.hygiene.leaks import leaks_in
from rl_cli.data.hygiene.masking import Masker
from rl_cli.data.hygiene.pii import KINDS, pii_in

KEY = "sk-test-AAAABBBBCCCCDDDD"
FOUND = {
    "email": ["ann@example.org", "a.b+c@mail.example.co.uk", "x_1%y@sub-domain.io", "to-bob@example.com"],
    "phone": ["+44 20 7946 0958", "+1-202-555-0143", "+4915112345678", "(202) 555-0143", "202-555-0143"],
    "card": ["4111 1111 1111 1111", "4111111111111111", "3782-822463-10005", "5555 5555 5555 4444"],
    "iban": ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"],
    "ip": ["8.8.8.8", "2001:4860:4860::8888", "203.0.114.7"],
}
NOT_FOUND = [
    *("user@localhost", "@decorator", "a @ b.com", "git@", "x@y", "pip install foo==1.2.3"),
    *(
        "2026-11-30",
        "2026-11-30 08:58:05",
        "12:30:45",
        "1,234,567.89",
        "3.14159265358979",
        "0x41111111111111111",
    ),
    *("4111 1111 1111 1112", "1234567890123456", "550e8400-e29b-41d4-a716-446655440000", "1764492000000"),
    *(
        "127.0.0.1",
        "192.168.1.10",
        "10.0.0.1",
        "300.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "::1",
        "fe80::1",
        "a::b::c",
    ),
    *(
        "DE88 3704 0044 0532 0130 00",
        "C++17",
        "+12",
        "x = y + 4915112345678901234567",
        "555-0143",
        "std::vector",
    ),
    *(
        "\\n@functools.wraps(f)",
        "\n@pytest.fixture",
        "sha 4111111111111111abc",
        "0.4111111111111111",
        "call_4111111111111111",
    ),
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts])
@pytest.mark.parametrize("around", ["{}", "see {}.", "({})", '"{}"', "a\\n{}\\n", "<{}>", "is: {}, ok"])
def test_found_whatever_stands_around_it(kind: str, text: str, around: str) -> None:
    whole = around.format(text)
    [found] = pii_in(whole, KINDS)
    begun = "n" if kind == "email" and "\\n" in around else ""  # it may as well be a part of the name
    assert (whole[found.first : found.end], found.kind) == (begun + text, kind)
    assert pii_in(whole, [other for other in KINDS if other != kind]) == []


@pytest.mark.parametrize("text", NOT_FOUND)
def test_not_found(text: str) -> None:
    assert pii_in(text, KINDS) == []


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("4111 1111 1111 1111 12/27", "[card] 12/27"),
        ("no 2 4111 1111 1111 1111", "no 2 [card]"),
        ("DE89 3704 0044 0532 0130 00 BIC COBADEFF", "[iban] BIC COBADEFF"),
        ("a@b.org,c@d.org; +44 20 7946 0958, 8.8.8.8", "[email],[email]; [phone], [ip]"),
    ],
)
def test_what_follows_hides_nothing(text: str, masked: str) -> None:
    assert Masker(False, KINDS).masked({"t": text}) == {"t": masked}


def test_a_mask_keeps_json_json_and_keys_apart() -> None:
    masker = Masker(True, KINDS)
    arguments = '{"card": 4111111111111111, "to": "ann@example.org",  "n": 1}'
    row = {
        "messages": [{"arguments": arguments, "content": 'he said "ann@example.org"'}],
        "metadata": {"ann@example.org": 1, "bob@example.org": 2, "card": 5555555555554444, "n": 12},
    }
    made = masker.masked(row)
    assert json.loads(made["messages"][0]["arguments"]) == {"card": "[card]", "to": "[email]", "n": 1}
    assert made["metadata"] == {"[email]": 1, "[email] 2": 2, "card": "[card]", "n": 12}
    assert masker.counts == {"email": 4, "card": 2}
    assert masker.masked(made) is made
    assert list(leaks_in(made, KINDS)) == []


def test_json_that_is_too_deep_to_look_into_is_text() -> None:
    masked = Masker(True, KINDS).masked({"t": "[" * 600 + '"ann@example.org"' + "]" * 600})
    assert masked == {"t": "[" * 600 + '"[email]"' + "]" * 600}


def test_a_clean_row_stays_the_same_object() -> None:
    row = {"a": ["text", 1, 2.5, None, True], "b": {"c": "12:30"}}
    assert Masker(True, KINDS).masked(row) is row


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_PIECE = st.sampled_from([KEY, *(text for texts in FOUND.values() for text in texts)])
_LEAF = st.lists(_TEXT | _PIECE, max_size=4).map(" ".join)
_VALUE = st.recursive(
    _LEAF | st.integers() | st.none() | st.just(4111111111111111),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_LEAF, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40)
@given(value=st.dictionaries(_TEXT, _VALUE, max_size=4), nested=st.booleans())
def test_what_was_masked_leaks_nothing(value: dict[str, object], nested: bool) -> None:
    """In a field, in its name, and in JSON as text."""
    row: dict[str, object] = {"text": json.dumps(value)} if nested else dict(value)
    masker = Masker(True, KINDS)
    made = masker.masked(row)
    assert list(leaks_in(made, KINDS)) == []
    assert masker.masked(made) == made
    if nested:
        json.loads(str(made["text"]))
