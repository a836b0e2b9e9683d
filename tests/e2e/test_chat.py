"""The chat as a person uses it, on a terminal of its own, and as a pipe uses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.cli import command, rl_cli
from tests.e2e.terminal import CTRL_C, CTRL_D, ESCAPE_ENTER, UP, Terminal
from tests.wire import refusals
from tests.wire.server import Call, Fault, Reply, Request, WireServer

SCRIPTS = Path(__file__).parent / "scripts"
KEY = "sk-test-AAAABBBBCCCCDDDD"


def endpoint(server: WireServer) -> list[str]:
    return ["--model", "openai/small", "--base-url", server.openai_url]


def answer_with_the_request(request: Request) -> Reply:
    last = request.body["messages"][-1]["content"]
    return Reply(f"You said {len(request.body['messages']) // 2}: {last!r}.")


def test_a_chat_greets_answers_knows_what_was_said_and_can_be_gone_on_with(home: Path):
    with WireServer(answer_with_the_request) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            assert chat.expect("model: openai/small at http://127").count("\n") == 0
            chat.expect("Session ")
            session = chat.expect(" · /help")
            chat.say("hello")
            chat.expect("You said 1: 'hello'.")
            chat.say("again")
            chat.expect("You said 2: 'again'.")
            chat.type(CTRL_D)
            chat.expect(f"rl-cli chat --resume {session}")
            assert chat.code() == 0
        with Terminal("chat", "--resume", session[:-2]) as chat:
            chat.expect(f"Session {session}, 2 turns so far: hello")
            chat.expect("  > again")
            chat.expect("  You said 2: 'again'.")
            chat.say("a third time")
            chat.expect("You said 3: 'a third time'.")
            chat.say("/quit")
            assert chat.code() == 0
        told = rl_cli("ask", "from a script", "--session", "latest")
        assert (told.code, "You said 4: 'from a script'." in told.out) == (0, True)
    assert server.violations == []


def test_text_is_on_the_screen_while_the_model_still_writes():
    words = [f"word{i} " for i in range(20)]
    with (
        WireServer([Reply("".join(words), piece=6, gap=0.15)]) as server,
        Terminal("chat", *endpoint(server)) as chat,
    ):
        chat.expect("/help")
        chat.say("tell me")
        chat.expect("word3 ")
        seen_at = time.monotonic()
        assert "word19" not in chat.seen
        chat.expect("word19")
        assert time.monotonic() - seen_at > 0.3
        assert chat.seen.count("word10 ") == 1


def test_agt_30_ctrl_c_ends_a_model_call_that_hangs():
    with WireServer([Reply("Half", fault=Fault("hang", 2)), Reply("I am back.")]) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            chat.say("tell me")
            chat.expect("Half")
            chat.type(CTRL_C)
            chat.expect("Interrupted.")
            chat.say("again")
            chat.expect("I am back.")
            chat.say("/quit")
            assert chat.code() == 0
        assert len(server.requests) == 2
        shown = rl_cli("sessions", "show", "latest").out
        assert "\n> tell me\n\nHalf …\n(interrupted)\n\n> again\n\nI am back.\n" in shown
        exported = rl_cli("sessions", "export", "latest").out
        assert "tell me\n\n## Assistant\n\nHalf …\n\n*(interrupted)*\n\n## Request\n\nagain" in exported
        server.set([Reply("Half", fault=Fault("hang", 2))])
        asking = subprocess.Popen(
            command("ask", "tell me", *endpoint(server)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert asking.stdout
        said = b""
        while b"Half" not in said:
            said += os.read(asking.stdout.fileno(), 1000)
        asking.send_signal(signal.SIGINT)
        assert asking.wait(3) == 130
        asking.stdout.close()
    assert len(server.requests) == 3


def test_lines_typed_during_a_turn_come_next_also_after_ctrl_c():
    with (
        WireServer(
            [Reply("Half", fault=Fault("hang", 2)), Reply("I am back."), Reply("Still here.")]
        ) as server,
        Terminal("chat", *endpoint(server)) as chat,
    ):
        chat.expect("/help")
        chat.say("tell me")
        chat.expect("Half")
        chat.say("typed meanwhile")
        chat.say("and more")
        chat.type(CTRL_C)
        chat.expect("Interrupted.")
        chat.expect("I am back.")
        chat.expect("Still here.")
    requests = [request.body["messages"][-1]["content"] for request in server.requests]
    assert requests == ["tell me", "typed meanwhile", "and more"]


def recall(chat: Terminal, text: str) -> None:
    """Goes back in the history, which the prompt reads in the background."""
    for _ in range(30):
        chat.type(UP)
        with suppress(AssertionError):
            chat.expect(text, timeout=2)
            return
    raise AssertionError(f"{text!r} is not recalled")


def test_lines_history_and_ctrl_c_at_the_prompt(home: Path):
    with WireServer(answer_with_the_request) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            chat.type(f"one{ESCAPE_ENTER}two\\")
            chat.say("")
            chat.say(f"three {KEY}")
            chat.expect("You said 1: 'one\\ntwo\\nthree ")
            chat.expect("[redacted]'")
            chat.expect(">")
            chat.type("this is not meant")
            chat.type(CTRL_C)
            recall(chat, "three ")
            chat.say("")
            chat.expect("You said 2: 'one\\ntwo\\nthree")
            chat.expect("[redacted]'")
            chat.expect(">")
            chat.type(CTRL_C)
            chat.expect("Ctrl-C again")
            chat.type(CTRL_C)
            assert chat.code() == 0
        kept = (home / "chat_history").read_text("utf-8")
        assert "+two" in kept
        assert KEY not in kept
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            recall(chat, "three [redacted]")


def test_commands_are_answered_without_the_model():
    with WireServer([]) as server, Terminal("chat", *endpoint(server)) as chat:
        chat.expect("/help")
        for line, said in (
            ("/help", "/approve [list | TOOL]"),
            ("/runs", "no runs yet"),
            ("/status", "openai/small, session"),
            ("/model", f"model: openai/small at {server.openai_url}\n"),
            ("/model nobody/x", "unknown model 'nobody/x'"),
            ("/model builtin/operator", "model: builtin/operator"),
            ("/approve rl_start_*", "Allowed in this session: rl_start_training"),
            ("/approve", "session"),
            ("/cost", "This session:"),
            ("/compact", "nothing to summarise yet"),
            ("/stauts", "did you mean status?"),
            ("help me", "built-in operator: a fixed procedure"),
        ):
            chat.say(line)
            chat.expect(said)
        chat.say("/quit")
        assert chat.code() == 0
        assert server.requests == []


@pytest.mark.parametrize(("answer", "asked_again"), [("y", True), ("s", False), ("a", False)])
def test_an_approval_is_asked_for_and_holds_as_long_as_was_said(answer: str, asked_again: bool, home: Path):
    def starts(request: Request) -> Reply:
        last = request.body["messages"][-1]
        if last["role"] == "user":
            return Reply(calls=[Call("rl_start_training", {})])
        return Reply(f"The tool said: {last['content'][:40]}")

    with WireServer(starts) as server, Terminal("chat", *endpoint(server)) as chat:
        chat.expect("/help")
        chat.say("start")
        chat.expect("rl_start_training may")
        chat.expect("Allow it?")
        chat.say(answer)
        chat.expect("no_environment")
        chat.say("once more")
        if asked_again:
            chat.expect("Allow it?")
            chat.say("n")
            chat.expect("refused")
        else:
            assert "Allow it?" not in chat.expect("no_environment")
        chat.say("/quit")
        assert chat.code() == 0


@pytest.mark.parametrize("answer", ["n\r", "\r", CTRL_D, "no, it is too dear\r"])
def test_anything_but_a_clear_yes_is_a_no_and_the_turn_goes_on(answer: str):
    replies = [Reply(calls=[Call("rl_start_training", {})]), Reply("Then I leave it.")]
    with WireServer(replies) as server, Terminal("chat", *endpoint(server)) as chat:
        chat.expect("/help")
        chat.say("start")
        chat.type("y\r")  # typed before the question was there
        chat.expect("Allow it?")
        chat.type(answer)
        chat.expect("Then I leave it.")
    result = server.requests[-1].body["messages"][-1]["content"]
    assert '"refused"' in result
    assert ("too dear" in result) == ("too dear" in answer)


def test_ctrl_c_at_a_question_ends_the_turn():
    with WireServer([Reply(calls=[Call("rl_start_training", {})]), Reply("I am back.")]) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            chat.say("start")
            chat.expect("Allow it?")
            chat.type(CTRL_C)
            chat.expect("Interrupted.")
            chat.say("again")
            chat.expect("I am back.")
        said = [m.get("content") or "" for m in server.requests[-1].body["messages"]]
        assert any("the person interrupted" in text for text in said)
        server.set([Reply(calls=[Call("rl_start_training", {})])])
        with Terminal("ask", "start", *endpoint(server)) as asking:
            asking.expect("Allow it?")
            asking.type(CTRL_C)
            assert asking.code() == 130


@pytest.fixture
def long_run(home: Path, tmp_path: Path) -> str:
    """The id of a run that goes on for a while."""
    play = tmp_path / "long.yaml"
    play.write_text("- repeat: {count: 600, every: 0.1, values: {loss: 0.1, reward/mean: [0.2, 0.8]}}\n")
    assert rl_cli("runs", "start", "gsm8k-mini", "--backend", f"replay:{play}").code == 0
    return str(rl_cli("runs", "show", "latest", "--json").rows()[0]["id"])


def test_a_run_stays_in_view_at_the_prompt_and_during_a_turn(long_run: str):
    with WireServer([Reply("done", delay=5)]) as server, Terminal("chat", *endpoint(server)) as chat:
        chat.expect("reward 0.")
        chat.say("hello")
        chat.expect("grpo · waiting for openai/small, ")
        chat.expect("done")
        chat.process.send_signal(signal.SIGTERM)
        assert chat.code() == 130
    assert rl_cli("runs", "show", long_run, "--json").rows()[0]["state"] == "running"
    assert rl_cli("runs", "stop", long_run, "--now").code == 0


def test_ctrl_c_ends_the_wait_for_a_run_and_not_the_run(home: Path, tmp_path: Path):
    play = tmp_path / "long.yaml"
    play.write_text("- repeat: {count: 600, every: 0.1, values: {loss: 0.1, reward/mean: [0.2, 0.8]}}\n")
    script = tmp_path / "script.yaml"
    script.write_text((SCRIPTS / "interrupted.yaml").read_text().replace("PLAY", str(play)))
    with Terminal("chat", "--yes", "--model", f"scripted/{script}") as chat:
        chat.expect("/help")
        chat.say("play")
        chat.expect("rl_check_status 2 s")
        chat.type(CTRL_C)
        chat.expect("I leave it running.")
        chat.expect("goes on by itself; watch it: rl-cli runs watch")
        chat.say("/status")
        chat.expect("step ")
        chat.type(CTRL_D)
        assert chat.code() == 0
        assert chat.seen.count("goes on by itself; watch it: rl-cli runs watch") == 1
    [run] = rl_cli("runs", "list", "--json").rows()
    assert run["state"] == "running"
    assert rl_cli("runs", "stop", run["id"], "--now").code == 0


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_the_chat_the_session_is_kept(end: signal.Signals, home: Path):
    with WireServer([Reply("Half", fault=Fault("hang", 2)), Reply("Whole.")]) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            chat.say("tell me")
            chat.expect("Half")
            chat.process.send_signal(end)
            assert chat.code(10) == 130
        with Terminal("chat", "--resume", "latest", *endpoint(server)) as again:
            again.expect("  > tell me")
            again.expect("  Half")
            again.expect("(the last turn was cut off)")
        told = rl_cli("ask", "go on", "--session", "latest", *endpoint(server))
    assert (told.code, "Whole." in told.out) == (0, True)
    assert [m["content"] for m in server.requests[-1].body["messages"][1:]] == ["tell me", "go on"]


@pytest.mark.parametrize("busy", [True, False])
def test_closing_the_window_ends_the_chat_and_keeps_the_session(busy: bool):
    with WireServer([Reply("One."), Reply("Half", fault=Fault("hang", 2)), Reply("Whole.")]) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            chat.say("first")
            chat.expect("One.")
            chat.expect(">")
            if busy:
                chat.say("second")
                chat.expect("Half")
            chat.hang_up()
            assert chat.process.wait(10) in (1, 130)
        server.set([Reply("Whole.")])
        told = rl_cli("ask", "go on", "--session", "latest")
    assert (told.code, "Whole." in told.out) == (0, True)


def test_a_request_that_is_made_again_says_so():
    again = [refusals.openai_rate_limit(retry_after_ms="20"), Reply("Here.")]
    with WireServer(again) as server, Terminal("chat", *endpoint(server)) as chat:
        chat.expect("/help")
        chat.say("hello")
        chat.expect("asking again in")
        chat.expect("Here.")
        server.set([refusals.openai_rate_limit(retry_after_ms="20"), Reply("Here.")])
        told = rl_cli("ask", "hello", "--json", *endpoint(server))
    assert [row["kind"] for row in told.rows() if row["kind"] != "delta"] == [
        "notice",
        "retry",
        "message",
        "end",
    ]


def test_an_endpoint_that_refuses_ends_the_turn_and_not_the_chat():
    with WireServer([refusals.openai_no_quota(), Reply("Paid.")]) as server:
        with Terminal("chat", *endpoint(server)) as chat:
            chat.expect("/help")
            chat.say("hello")
            chat.expect("quota")
            chat.say("again")
            chat.expect("Paid.")
        server.set([refusals.openai_no_quota()])
        told = rl_cli("ask", "hello", "--json", *endpoint(server))
    assert told.code == 1
    assert told.err.startswith("error: ")
    assert told.rows()[-1]["stop"] == "error"
    assert "quota" in told.rows()[-1]["error"]


def test_what_a_pipe_does_not_need_is_not_imported():
    code = (
        "import sys; from rl_cli.cli.main import run; run(['chat']);"
        "print([m for m in ('prompt_toolkit', 'rich') if m in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input="help me\n/quit\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.stdout.splitlines()[-1] == "[]"


def test_a_pipe_is_read_line_by_line():
    with WireServer(answer_with_the_request) as server:
        told = subprocess.run(
            command("chat", *endpoint(server)),
            input="hello\n\n/status\none\\\ntwo\n/quit\nnever\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert told.returncode == 0, told.stderr
    assert "You said 1: 'hello'.\n" in told.stdout
    assert "You said 2: 'one\\ntwo'.\n" in told.stdout
    assert len(server.requests) == 2
    assert "\x1b" not in told.stdout


def test_lines_on_a_pipe_are_a_chat_also_without_a_command():
    told = subprocess.run(command(), input="help me\n", capture_output=True, text=True, timeout=60)
    assert (told.returncode, "Session " in told.stdout) == (0, True)
    told = subprocess.run(command("--seed", "3", "--yes"), input="help me\n", capture_output=True, text=True)
    assert (told.returncode, "Session " in told.stdout) == (0, True)
    told = subprocess.run(command("ask"), input="help me\n", capture_output=True, text=True, timeout=60)
    assert told.returncode == 2
    assert "there is no request (say it as an argument" in told.stderr


def test_an_address_alone_takes_the_only_model_that_is_served_there():
    with WireServer([Reply("Here."), Reply("Here.")], models=["qwen3"]) as server:
        told = rl_cli("ask", "hello", "--base-url", server.openai_url)
        assert told.code == 0, told.err
        assert told.out.startswith(f"model: openai/qwen3 at {server.openai_url}\n")
        told = rl_cli("ask", "hello", "--base-url", server.openai_url, OPENAI_API_KEY=KEY)
        assert told.out.startswith(f"model: openai/qwen3 at {server.openai_url}\n")
    with WireServer([], models=["qwen3", "llama"]) as server:
        told = rl_cli("ask", "hello", "--base-url", server.openai_url)
    assert told.code == 2
    assert "has 2 models: qwen3, llama (choose one: --model openai/NAME" in told.err
    told = rl_cli("ask", "hello", "--base-url", server.openai_url)
    assert told.code == 2
    assert "does not say which models it has" in told.err


def test_an_answer_after_a_call_that_failed_is_a_success_and_says_how_to_go_on():
    replies = [Reply(calls=[Call("rl_describe_environment", {"name": "nothing"})]), Reply("There is none.")]
    with WireServer(replies) as server, Terminal("ask", "what is nothing?", *endpoint(server)) as asking:
        asking.expect("✗ rl_describe_environment")
        asking.expect("There is none.")
        asking.expect("To go on: rl-cli chat --resume ")
        asking.expect('or rl-cli ask "..."')
        assert asking.code() == 0


def test_a_pipe_ends_with_the_worst_code_of_its_turns(tmp_path: Path):
    (tmp_path / "lines").write_text("help me\ntrain mnist")
    with open(tmp_path / "lines") as lines:
        told = subprocess.run(command("chat"), stdin=lines, capture_output=True, text=True, timeout=60)
    assert told.returncode == 1
    assert "no environment" in told.stdout


def test_a_dumb_terminal_gets_plain_lines():
    with (
        WireServer(answer_with_the_request) as server,
        Terminal("chat", *endpoint(server), TERM="dumb") as chat,
    ):
        chat.expect("/help")
        chat.expect("> ")
        chat.say("hello")
        chat.expect("You said 1: 'hello'.")
        chat.expect("> ")
        chat.type("never mind")
        chat.type(CTRL_C)
        chat.expect("Ctrl-C again")
        chat.say("more")
        chat.expect("You said 2: 'more'.")
        chat.type(CTRL_D)
        assert chat.code() == 0
        assert "\x1b" not in chat.raw


def test_the_command_alone_is_the_chat_at_a_terminal():
    with Terminal() as chat:
        chat.expect("built-in operator")
        chat.expect("/help for commands")
        chat.type(CTRL_D)
        assert chat.code() == 0
        assert "To go on" not in chat.seen
    assert rl_cli("sessions", "list", "--json").rows() == []


def test_the_json_of_a_request_is_a_stream_of_events():
    replies = [
        Reply("Looking.", reasoning="Let me see.", calls=[Call("rl_list_runs", {})]),
        Reply("There are none."),
    ]
    with WireServer(replies) as server:
        told = rl_cli("ask", "which runs?", "--json", *endpoint(server))
    assert told.code == 0, told.err
    rows = told.rows()
    kinds = [row["kind"] for row in rows]
    assert kinds[0] == "notice"
    assert list(dict.fromkeys(kinds[1:])) == ["delta", "message", "call", "result", "end"]
    said = "".join(row.get("text", "") for row in rows if row["kind"] == "delta")
    thought = "".join(row.get("reasoning", "") for row in rows if row["kind"] == "delta")
    assert (said, thought) == ("Looking.There are none.", "Let me see.")
    end = rows[-1]
    assert (end["stop"], end["error"], end["dollars"]) == ("finished", None, 0.0)
    assert end["usage"]["requests"] == 2
    assert rl_cli("sessions", "show", end["session"]).code == 0


def test_a_watched_run_ends_with_its_summary_on_lines_of_its_own(home: Path):
    assert rl_cli("runs", "start", "gsm8k-mini", "--backend", "replay:nan").code == 0
    with Terminal("runs", "watch", "latest") as watching:
        watching.expect("state: failed (diverged: loss is NaN")
        watching.expect("\nReplay, nothing was trained")
        assert watching.code() == 1
