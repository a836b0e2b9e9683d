"""`rl-cli data redact` and `rl-cli data dedupe` as a user runs them."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest

from rl_cli.core.messages import assistant, user
from tests.data.rows_kit import SEARCH, calling, needs_the_data_extra, plain, row, run_here, write_rows

KEY = "sk-test-AAAABBBBCCCCDDDD"


def test_check_tells_places_and_never_the_secret(tmp_path: Path) -> None:
    dirty = [
        plain(1),
        row(
            2,
            [user(f"use {KEY}"), assistant("mail ann@example.org")],
            [],
            metadata={"api_key": "x9Kq2LmZ8vT4"},
        ),
    ]
    path = write_rows(tmp_path / "rows.jsonl", dirty)
    done = run_here("data", "redact", "--check", str(path), "--pii", "all")
    assert done.code == 1
    assert done.out.splitlines() == [
        "line 2: secret in messages[0].content, characters 4 to 28",
        "line 2: email in messages[1].content, characters 5 to 20",
        "line 2: secret in metadata.api_key, characters 0 to 12",
    ]
    assert "1 email, 2 secret" in done.err
    for leak in (KEY, "ann@", "x9Kq2LmZ8vT4"):
        assert leak not in done.out + done.err
    found = run_here("data", "redact", "--check", str(path), "--json").rows()
    assert found[0] == {"line": 2, "kind": "secret", "place": "messages[0].content", "first": 4, "end": 28}
    assert run_here("data", "redact", "--check", str(write_rows(tmp_path / "clean", [plain(1)]))).code == 0


def test_escapes_hide_no_secret_in_arguments(tmp_path: Path) -> None:
    """Exports for training decode them."""
    spelt = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    deeper = json.dumps({"inner": f'{{"q": "{spelt}"}}'})
    address = '{"url": "postgres:\\/\\/u:s3cretpw@db"}'
    rows = [calling(n, SEARCH, text) for n, text in enumerate((f'{{"q": "{spelt}"}}', deeper, address))]
    path, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    places = [leak["place"] for leak in run_here("data", "redact", "--check", str(path), "--json").rows()]
    where = "messages[2].tool_calls[0].function.arguments, as JSON: "
    assert places == [f"{where}q", f"{where}inner, as JSON: q", f"{where}url"]
    done = run_here("data", "export", "-i", str(path), "--format", "trl", "-o", str(out), "--json")
    assert done.rows()[0]["masked"] == {"secret": 3}
    made = [json.loads(line)["messages"][2]["tool_calls"][0] for line in out.read_text().splitlines()]
    assert [call["function"]["arguments"] for call in made] == [
        {"q": "[redacted]"},
        {"inner": '{"q": "[redacted]"}'},
        {"url": "postgres://u:[redacted]@db"},
    ]
    assert run_here("data", "redact", "--check", str(out)).code == 0


def test_what_was_masked_passes_the_check(tmp_path: Path) -> None:
    dirty = [{"any": {"form": [KEY, "ann@example.org"]}}, calling(2, SEARCH, json.dumps({"q": KEY}))]
    path, clean = write_rows(tmp_path / "rows.jsonl", dirty), tmp_path / "clean.jsonl"
    done = run_here("data", "redact", "-i", str(path), "-o", str(clean), "--pii", "email", "--json")
    assert done.rows() == [
        {"rows": 2, "masked": {"secret": 2, "email": 1}, "bad_lines": 0, "output": str(clean)}
    ]
    assert run_here("data", "redact", "--check", str(clean), "--pii", "all").code == 0
    again = run_here("data", "redact", "-i", str(path), "-o", str(clean))
    assert (again.code, "--force" in again.err) == (2, True)


@pytest.mark.parametrize(
    "words", [["--check", "f", "--output", "g"], ["--input", "f"], ["--check", "f", "--pii", "emial"], []]
)
def test_wrong_options_say_what_to_do(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "f").write_text("{}\n")
    with chdir(tmp_path):
        done = run_here("data", "redact", *words)
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_equal_rows_stay_once_whatever_their_ids(tmp_path: Path) -> None:
    same = [calling(n, SEARCH, '{"city": "Oslo"}') for n in (1, 2)]
    for each in same:
        each["messages"][1] = user("Look.")
    other = calling(3, SEARCH, '{"city": "Rome"}')
    path, kept = write_rows(tmp_path / "rows.jsonl", [*same, other]), tmp_path / "kept.jsonl"
    done = run_here("data", "dedupe", "-i", str(path), "-o", str(kept), "--json")
    assert (done.code, done.rows()[0]["kept"], done.rows()[0]["duplicates"]) == (
        0,
        2,
        {"exact": 1, "near": 0},
    )
    assert [json.loads(line) for line in kept.read_text().splitlines()] == [same[0], other]


def test_near_ones_go_by_option(tmp_path: Path) -> None:
    needs_the_data_extra()
    words = [f"word{n}" for n in range(200)]
    said = [" ".join(words), " ".join([*words[:100], "changed", *words[101:]]), " ".join(reversed(words))]
    rows = [row(n, [user(text), assistant("ok")], []) for n, text in enumerate(said)]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    kept = str(tmp_path / "kept.jsonl")
    done = run_here("data", "dedupe", "-i", str(path), "-o", kept, "--near", "0.85", "--json")
    [told] = done.rows()
    assert (told["kept"], told["duplicates"]) == (2, {"exact": 0, "near": 1})
