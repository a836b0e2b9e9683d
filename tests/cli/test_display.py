from __future__ import annotations

import io
import json
import os
import pty
import re
from typing import Any, TextIO

import pytest

from environments.agent_loop import AssistantMessage, ToolFinished, ToolStarted, TurnStarted
from environments.policies.base import ReasoningDelta, Retrying, TextDelta
from environments.tool_calls import CallRecord
from rl_cli.cli.display import JsonDisplay, TextDisplay
from rl_cli.cli.event_lines import call_line, clip, fold, progress_line, result_line, seconds_text
from rl_cli.cli.run_watch import run_line
from rl_cli.cli.wrapping import Flow, display_width, wrapped
from rl_cli.core.messages import assistant, tool_call
from rl_cli.runs.progress import Progress

KEY = "sk-test-AAAABBBBCCCCDDDD"
ALERT = {"kind": "alert", "time": "2026-03-01T12:00:00.000Z", "rule": "reward_falling", "message": "it falls"}


class TerminalText(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def stream(display: TextDisplay | JsonDisplay, text: str, piece: int = 3) -> None:
    for start in range(0, len(text), piece):
        display.on_delta(TextDelta(text[start : start + piece]))


def record(name: str, result: dict[str, Any], seconds: float = 0.1) -> ToolFinished:
    ok = bool(result["ok"])
    return ToolFinished(CallRecord("c1", name, "{}", json.dumps(result), ok, seconds, 0))


def on_screen(written: str) -> list[str]:
    """What a terminal shows after all of it: a return begins the line anew, the erase clears it."""
    lines = [""]
    for part in written.replace("\x1b[2m", "").replace("\x1b[0m", "").split("\n"):
        lines[-1] = part.rpartition("\r\x1b[2K")[2]
        lines.append("")
    return lines[:-1]


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (
            {"exit_code": 0, "stdout": "a\n2 passed\n", "stderr": "warn"},
            "✓ terminal exit 0: 2 passed (0.1 s)",
        ),
        ({"exit_code": 7, "stdout": "a", "stderr": "no\n"}, "✗ terminal exit 7: no (0.1 s)"),
        ({"exit_code": None, "timed_out": True, "stdout": ""}, "✗ terminal ended at its time-out (0.1 s)"),
        ({"processes": [{}], "more": False}, "✓ terminal 1 process (0.1 s)"),
    ],
)
def test_how_a_command_ended_is_one_line(result: dict[str, Any], shown: str) -> None:
    assert result_line("terminal", True, json.dumps({"ok": True, **result}), 0.1) == shown


def test_what_other_calls_say_waits_for_the_answer_to_a_question() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    display.pause_to_ask()
    display.on_event(record("status", {"ok": True, "state": "running"}))
    assert out.getvalue() == ""
    display.resume()
    assert "status state running" in out.getvalue()


def test_streamed_text_is_written_at_once_and_only_once() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    display.on_event(TurnStarted(0))
    stream(display, "Hello, ")
    assert out.getvalue() == "\nHello, "
    stream(display, "you.")
    display.on_event(AssistantMessage(assistant("Hello, you.")))
    display.on_event(AssistantMessage(assistant("And not streamed.")))
    assert out.getvalue() == "\nHello, you.\n\nAnd not streamed.\n"


def test_an_empty_reply_shows_nothing() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    for content in (None, ""):
        display.on_event(TurnStarted(0))
        display.on_event(AssistantMessage(assistant(content)))
    assert out.getvalue() == ""


def test_a_repeated_request_says_so_and_the_text_begins_anew() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    stream(display, "Half an ans")
    display.on_delta(Retrying("the connection was lost", 2.0))
    stream(display, "A whole answer.")
    display.on_event(AssistantMessage(assistant("A whole answer.")))
    shown = out.getvalue().splitlines()
    assert shown[1] == "Half an ans"
    assert shown[2].startswith("  … the connection was lost; asking again in 2.0 s.")
    assert shown[-1] == "A whole answer."


def test_a_secret_in_pieces_and_escapes_do_not_reach_the_terminal() -> None:
    for make in (TextDisplay, JsonDisplay):
        out = io.StringIO()
        display = make(out)
        stream(display, f"It is {KEY} \x1b[2J and so on.", 5)
        display.on_event(AssistantMessage(assistant("")))
        display.on_event(record("look", {"ok": True, "found": KEY}))
        display.notice(f"found {KEY}")
        assert KEY not in out.getvalue()
        assert "\x1b" not in out.getvalue()
        assert out.getvalue().rstrip().endswith("found [redacted]" if make is TextDisplay else '"}')


def test_calls_are_shown_with_folded_results_and_durations() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    display.on_event(ToolStarted(tool_call("c1", "rl_list_runs", '{"limit": 3}')))
    display.on_event(record("rl_list_runs", {"ok": True, "runs": [1, 2], "long": "x" * 500}, 125))
    display.on_event(record("rl_list_runs", {"ok": False, "error": {"type": "failed", "message": "no"}}))
    lines = out.getvalue().splitlines()
    assert lines[0] == '  → rl_list_runs({"limit": 3})'
    assert lines[1].startswith("  ✓ rl_list_runs 2 runs, long xxx")
    assert lines[1].endswith("… (2 min 05 s)")
    assert lines[2] == "  ✗ rl_list_runs failed: no (0.1 s)"


def test_the_status_line_is_gone_before_anything_else_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = TerminalText()
    display = TextDisplay(out)
    display.resume()
    display.on_progress(
        {"kind": "metrics", "row": {"phase": "grpo", "step": 3, "loss": 0.5}, "total_steps": 9}
    )
    assert on_screen(out.getvalue()) == ["  grpo step 3/9  loss 0.500"]
    stream(display, "Text that is long")
    display.on_progress({"kind": "metrics", "row": {"phase": "grpo", "step": 4}, "total_steps": 9})
    display.on_news({**ALERT, "run": "r1"})
    assert on_screen(out.getvalue()) == ["", "Text that is long"]
    display.on_event(AssistantMessage(assistant("Text that is long")))
    shown = on_screen(out.getvalue())
    assert shown[1:3] == ["Text that is long", "r1  alert (reward_falling): it falls"]
    assert shown[3] == "  grpo step 4/9"
    display.end_turn()
    assert on_screen(out.getvalue())[-1] == ""


def test_a_model_that_sends_nothing_is_named_also_in_the_middle_of_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out, now = TerminalText(), [100.0]
    display = TextDisplay(out, clock=lambda: now[0])
    display.model = "openai/small"
    display.resume()
    display.on_event(TurnStarted(0))
    now[0] += 3
    display.tick()
    assert on_screen(out.getvalue()) == ["  waiting for openai/small, 3 s"]
    display.on_delta(ReasoningDelta("Let me think."))
    assert on_screen(out.getvalue()) == ["  openai/small is thinking, 13 characters, 3 s"]
    stream(display, "Half an")
    now[0] += 9
    display.tick()
    assert on_screen(out.getvalue())[-1] == "Half an"
    now[0] += 3
    display.tick()
    assert on_screen(out.getvalue())[-2:] == ["Half an", "  waiting for openai/small, 12 s"]
    stream(display, " answer.")
    assert out.getvalue().endswith("\r\x1b[2K\x1b[A\x1b[7C answer.")  # back up, behind what was said
    display.on_event(AssistantMessage(assistant("Half an answer.")))


def test_news_of_a_run_that_come_twice_are_shown_once() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    display.resume()
    end = {"kind": "state", "state": "failed", "reason": "loss is NaN"}
    for event in (ALERT, end):
        display.on_progress(event)
        display.on_news({**event, "run": "r1"})
    assert out.getvalue().count("it falls") == 1
    assert out.getvalue().count("loss is NaN") == 1
    display.end_turn()
    display.resume()
    display.on_news({**end, "run": "r2"})
    assert out.getvalue().count("loss is NaN") == 2


def test_where_lines_cannot_be_rewritten_figures_come_as_lines_now_and_then() -> None:
    out = io.StringIO()
    display = TextDisplay(out)
    for step in range(100):
        display.on_progress({"kind": "metrics", "row": {"phase": "sft", "step": step}, "total_steps": 9})
    assert out.getvalue() == "    sft step 0/9\n"


def test_json_events_and_what_stays_out_of_them() -> None:
    out = io.StringIO()
    display = JsonDisplay(out)
    display.on_delta(ReasoningDelta("Hm."))
    stream(display, "Yes.")
    message = {**assistant("Yes."), "provider_state": {"anthropic": {"signature": "opaque"}}}
    display.on_event(AssistantMessage(message))  # type: ignore[arg-type]
    display.on_delta(Retrying("busy", 1.0))
    display.on_progress({"kind": "phase", "name": "grpo"})
    display.end(stop="finished", error=None)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    kinds = ["delta", "delta", "delta", "message", "retry", "progress", "end"]
    assert [row["kind"] for row in rows] == kinds
    assert rows[0]["reasoning"] == "Hm."
    assert rows[1]["text"] + rows[2]["text"] == "Yes."
    assert "opaque" not in out.getvalue()
    assert rows[5]["progress"] == "phase"


@pytest.mark.parametrize(("text", "columns"), [("short", 10), ("longer than that", 8), ("训练一个模型吧", 7)])
def test_a_line_never_takes_more_columns_than_there_are(text: str, columns: int) -> None:
    shown = clip(text, columns)
    assert display_width(shown) <= columns
    assert shown == text or shown.endswith("…")


@pytest.mark.parametrize("columns", [20, 44, 80])
@pytest.mark.parametrize(
    "text",
    [
        "Some prose of words that are not too long, and that comes in pieces of any size whatever.",
        "Two lines.\n  - an item that is so long that it has to go on below\n",
        "训练一个模型吧，然后告诉我结果如何，也把报告给我。 And then English words again.",
        f"A word that is longer than a line: {'x' * 100} and on it goes with more words.",
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_words_are_not_broken_at_the_edge_of_the_terminal(text: str, columns: int, piece: int) -> None:
    flow = Flow()
    written = "".join(flow.feed(text[i : i + piece], columns) for i in range(0, len(text), piece))
    for shown in (emulated(written, columns), emulated(wrapped(text, columns), columns)):
        assert all(display_width(line) <= columns for line in shown)
        words = [word for word in " ".join(shown).split() if word.isascii() and "x" * 10 not in word]
        assert words == [word for word in text.split() if word.isascii() and "x" * 10 not in word]
        assert "".join("".join(shown).split()) == "".join(text.split())


def emulated(written: str, columns: int) -> list[str]:
    """The lines of a terminal that is so wide, for the few sequences that are used."""
    lines, at = [""], 0
    for part in re.findall(r"\x1b\[\d*[CK]|.|\n", written):
        if part == "\n":
            lines.append("")
            at = 0
        elif part == "\r":
            at = 0
        elif part.endswith("K") and part != "K":
            lines[-1] = lines[-1][:at]
        elif part.startswith("\x1b"):
            columns_right, at = int(part[2:-1]), 0
            while display_width(lines[-1][:at]) < columns_right:
                at += 1
        else:
            if display_width(lines[-1][:at] + part) > columns:
                lines.append("")
                at = 0
            lines[-1] = lines[-1][:at] + part
            at += 1
    return lines


def test_the_line_of_a_run_has_what_matters_within_a_narrow_terminal() -> None:
    rows = [{"phase": "grpo", "step": i, "reward/mean": 0.5123, "seconds/step": 4.0} for i in range(1, 101)]
    progress = Progress(total_steps=300)
    progress.feed(rows, [{"kind": "phase", "name": "grpo"}])
    line = run_line("running", progress)
    warm = Progress(total_steps=300)
    warm.feed([{"phase": "sft", "step": 245, "loss": 0.3}], [{"kind": "phase", "name": "sft"}])
    assert run_line("running", warm, 300) == "step 245/300  loss 0.300  sft"
    assert line == "step 100/300  reward 0.512  13 min 20 s left  grpo"
    assert " left" in clip(f"  {line}", 79 // 2 + 8)


def test_durations_and_lines_for_people() -> None:
    played = {"kind": "warm_start", "accuracy": 0.22, "note": "from the recording"}
    assert progress_line(played) == "warm start: accuracy 0.220, from the recording"
    assert progress_line({"kind": "warm_start"}) == "warm start: played"
    assert fold('{"ok": true, "profiles": [1], "results": [1, 2], "entries": [1]}') == (
        "1 profile, 2 results, 1 entry"
    )
    assert fold('{"ok": true, "runs": []}') == "0 runs"
    assert [seconds_text(s) for s in (0.04, 59.9, 65, 3700)] == [
        "0.0 s",
        "59.9 s",
        "1 min 05 s",
        "1 h 01 min",
    ]
    assert progress_line({"kind": "unheard of"}) is None
    row = {"phase": "sft", "step": 245, "loss": 0.3}
    assert (
        progress_line({"kind": "metrics", "row": row, "total_steps": 300}) == "sft step 245/300  loss 0.300"
    )
    warm = {
        "kind": "warm_start",
        "source": "cache",
        "steps": 300,
        "gate": 0.5703125,
        "note": "The warm start.",
    }
    assert progress_line(warm) == "warm start: cache, 300 steps, gate 0.570. The warm start."
    resumed = {"kind": "resumed", "attempt": 2, "step": 10}
    assert progress_line(resumed) == "resumed from step 10 (attempt 2)"


def test_a_status_is_folded_to_how_the_run_goes() -> None:
    status = {
        "ok": True,
        "why": "due",
        "run": {"state": "running"},
        "progress": {"phase": "grpo", "step": 12, "total_steps": 40, "reward_last": 0.5471},
        "recent": [{}, {}],
        "alerts": [{"rule": "clipped"}],
        "next_check_seconds": 16.1,
    }
    assert fold(json.dumps(status)) == (
        "check is due: running, step 12/40, reward 0.547, 1 alert (clipped), next check in 16.1 s"
    )


def test_arguments_are_shown_in_their_own_letters() -> None:
    shown = call_line(tool_call("c1", "rl_stop_training", json.dumps({"reason": "用户要求停止"})))
    assert shown == '→ rl_stop_training({"reason": "用户要求停止"})'


def test_a_terminal_that_shows_no_escapes_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        _show_some(TextDisplay(terminal))
    assert b"\x1b" not in os.read(ours, 1000)
    os.close(ours)


def _show_some(display: TextDisplay) -> None:
    out: TextIO = display.screen.out
    display.resume()
    display.on_progress({"kind": "metrics", "row": {"phase": "sft", "step": 1}})
    display.on_event(ToolStarted(tool_call("c1", "look", "{}")))
    out.flush()
