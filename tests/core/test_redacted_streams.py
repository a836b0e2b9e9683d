"""Text that comes in pieces: a secret in it is never shown, and the rest is, at once."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.core.masked_files import mask_file
from rl_cli.core.redaction import MASK, StreamRedactor, forget, redact_stream, redact_text
from rl_cli.core.secret_search import LEAD
from tests.core.secrets_kit import KEY, TOKEN, VALUES, texts


@pytest.fixture(autouse=True)
def known_secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)
    forget()
    yield
    forget()


def in_pieces(text: str, cuts: list[int]) -> list[str]:
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[first:last] for first, last in itertools.pairwise(at)]


@given(texts, st.lists(st.integers(0, 5000), max_size=30))
def test_any_split_shows_what_the_whole_would_show(text: str, cuts: list[int]) -> None:
    redactor = StreamRedactor()
    shown = "".join(redactor.feed(piece) for piece in in_pieces(text, cuts)) + redactor.flush()
    assert shown == redact_text(text)


@settings(deadline=None)
@given(texts)
def test_character_by_character_too(text: str) -> None:
    redactor, at_once = StreamRedactor(), StreamRedactor(at_once=True)
    seen = shown = ""
    for character in text:
        seen += redactor.feed(character)
        shown += at_once.feed(character)
        assert not any(value in seen or value in shown for value in VALUES.values())
    assert seen + redactor.flush() == redact_text(text)
    shown += at_once.flush()
    assert not any(value[LEAD:] in shown for value in VALUES.values())


def test_a_mask_behind_a_secret_hides_it_from_nobody() -> None:
    for text in ("password=hunter22[redacted]", "password=hunter22[0]", "api_key: abc123def[red"):
        redactor = StreamRedactor()
        assert "".join(map(redactor.feed, text)) + redactor.flush() == redact_text(text)


def test_harmless_text_is_shown_at_once() -> None:
    redactor = StreamRedactor()
    words = "The reward rose from 0.1 to 0.4 within 20 steps, so the token and the password went in well."
    pieces = [word + " " for word in words.split()]
    for piece in [*pieces, "in", "ter", "est", "ing", ".\n", "| a | b |\n", "- b"]:
        assert redactor.feed(piece) == piece


def test_what_might_begin_a_secret_waits_only_until_it_does_not() -> None:
    redactor = StreamRedactor()
    assert redactor.feed("ask sk-") == "ask "
    assert redactor.feed("learn about it") == "sk-learn about it"
    assert redactor.feed("key " + KEY[:8]) == "key "
    assert redactor.feed(KEY[8:] + " is it") == f"{MASK} is it"
    assert redactor.feed("zq") == ""
    assert redactor.flush() == "zq"


def test_for_a_reader_two_letters_do_not_wait() -> None:
    redactor = StreamRedactor(at_once=True)
    for piece in ("models", " it's", " sk", "ill"):
        assert redactor.feed(piece) == piece
    assert redactor.feed(", ask sk-") == ", ask "
    assert redactor.feed("learn about it, key ") == "sk-learn about it, key "
    assert "".join(map(redactor.feed, KEY + " is it")) == f"sk{MASK} is it"
    assert redactor.feed(" password: ") + redactor.feed("hu") == " password: "
    assert redactor.feed("nter22 ") + redactor.flush() == f"{MASK} "


def test_a_long_unfinished_thing_is_not_held_for_ever() -> None:
    redactor = StreamRedactor()
    redactor.feed("-----BEGIN PRIVATE KEY-----")
    shown = "".join(redactor.feed("word, word ") for _ in range(1000))
    assert shown.endswith("word, word ")


def test_a_stream_masks_what_is_printed_in_pieces_and_keeps_the_rest_of_its_kind() -> None:
    inner = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    stream = redact_stream(inner)
    print("a", TOKEN[:5], end="", file=stream, flush=True)
    print(TOKEN[5:], "b", file=stream)
    stream.writelines(["c\n", "s"])
    assert (stream.encoding, stream.isatty()) == ("utf-8", False)
    stream.release()  # type: ignore[attr-defined]
    inner.seek(0)
    assert inner.read() == f"a {MASK} b\nc\ns"


CHILD = """
import logging, os, sys
from rl_cli.core.own_process import drop_keys, redact_output
redact_output(); drop_keys(keep=["KEPT_API_KEY"])
print(sorted(name for name in os.environ if name.endswith(("_KEY", "_TOKEN"))))
logging.getLogger("x").error("log " + sys.argv[1])
print("now " + sys.argv[1], end="")
raise RuntimeError("crash " + sys.argv[1])
"""


def test_sec_10_a_process_of_ours_knows_what_to_mask_and_has_no_key_to_give_away() -> None:
    environment = {**os.environ, "KEPT_API_KEY": "a-key-that-is-needed", "OPENAI_API_KEY": KEY}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, f"{KEY} {TOKEN}"], env=environment, capture_output=True, text=True
    )
    assert done.stdout == f"['ACME_TOKEN', 'KEPT_API_KEY']\nnow {MASK} {MASK}"
    assert f"log {MASK} {MASK}" in done.stderr
    assert f"RuntimeError: crash {MASK} {MASK}" in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert TOKEN not in done.stderr + done.stdout


def test_secrets_in_a_foreign_file_are_overwritten_in_place(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    before = b"\xff\xfe ok \xc3\xa9 " + TOKEN.encode() + b"\n"
    filler = b"x" * 70 + b"\n"
    path.write_bytes(before + filler * 130_000 + KEY.encode() + b" end\n")
    size = path.stat().st_size
    assert mask_file(path) == 2
    after = path.read_bytes()
    assert len(after) == size
    assert after.startswith(b"\xff\xfe ok \xc3\xa9 [redacted]***")
    assert after.endswith(b"x\n" + MASK.encode() + b"*" * (len(KEY) - len(MASK)) + b" end\n")
    assert mask_file(path) == 0
