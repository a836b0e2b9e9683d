from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import termios
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.tools.sample_tools  # noqa: F401
from rl_cli.agent.approval_question import GUTTER, describe_call
from rl_cli.agent.approval_rules import STRICTNESS, Rule, as_text, decide, exactly
from rl_cli.agent.approvals import Approvals
from rl_cli.core.errors import BadUsage
from rl_cli.core.redaction import forget
from rl_cli.core.settings import answers_file, load_settings, user_file
from tools.dispatcher import ApprovalRequest, CallContext, Estimate, Verdict, handle_function_call, tool_specs

SPECS = tool_specs(["test"])


class Keyboard(io.TextIOBase):
    """A terminal as standard input: each answer is typed when the next question has come."""

    def __init__(self, ours: int) -> None:
        self.ours = ours
        self.answers: list[bytes] = []
        self.questions: list[str] = []

    def write(self, text: str) -> int:
        """Stands in for stderr: a question is on the screen when it is flushed."""
        self.questions.append(text)
        return len(text)

    def flush(self) -> None:
        if "".join(self.questions).endswith("] ") and self.answers:
            os.write(self.ours, self.answers.pop(0))


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keyboard]:
    ours, theirs = pty.openpty()
    board = Keyboard(ours)
    with open(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        yield board
    os.close(ours)


def verdict(
    approvals: Approvals, name: str, arguments: dict[str, Any] | None = None, estimate: Estimate | None = None
) -> Verdict:
    return asyncio.run(approvals(ApprovalRequest(SPECS[name], arguments or {}, estimate)))


def answering(*answers: str) -> tuple[list[str], Any]:
    """An `ask` that gives these answers, and the questions it was asked."""
    left, questions = list(answers), []

    async def ask(question: str, choices: Sequence[str]) -> str:
        questions.append(question)
        return left.pop(0)

    return questions, ask


def test_reading_and_writing_need_nobody_and_yes_allows_the_rest() -> None:
    for name in ("read_it", "write_it"):
        assert verdict(Approvals(), name).allow
    for name in ("execute_it", "spend_it"):
        assert verdict(Approvals(yes=True), name).allow
        refused = verdict(Approvals(), name)
        assert not refused.allow
        assert "--yes" in refused.reason


@pytest.mark.parametrize(
    ("answer", "allow", "reason"),
    [
        (b"y\n", True, ""),
        (b"YES\n", True, ""),
        ("是\n".encode(), True, ""),
        (b"yeah\n", False, "yeah"),
        (b"\n", False, "the person said no"),
        (b"\x04", False, "the person said no"),
        (b"n\n", False, "the person said no"),
        (b"n, use 20 steps\n", False, "said no: use 20 steps"),
        (b"use 20 steps\n", False, "said no: use 20 steps"),
        (b"v\n", False, "v"),
    ],
)
def test_only_a_clear_yes_counts(answer: bytes, allow: bool, reason: str, keyboard: Keyboard) -> None:
    keyboard.answers = [answer]
    with redirect_stderr(keyboard):
        given_verdict = verdict(Approvals(interactive=True), "spend_it", {"what": "x"})
    assert given_verdict.allow is allow
    assert reason in given_verdict.reason


def test_what_was_typed_before_the_question_does_not_answer_it(keyboard: Keyboard) -> None:
    os.write(keyboard.ours, b"y\n")
    keyboard.answers = [b"n\n"]
    with redirect_stderr(keyboard):
        assert not verdict(Approvals(interactive=True), "spend_it").allow


def test_questions_come_one_at_a_time(keyboard: Keyboard) -> None:
    keyboard.answers = [b"y\n", b"n\n"]

    async def main() -> list[bool]:
        approvals = Approvals(interactive=True)
        requests = (ApprovalRequest(SPECS[name], {}) for name in ("spend_it", "execute_it"))
        return [v.allow for v in await asyncio.gather(*map(approvals, requests))]

    with redirect_stderr(keyboard):
        assert asyncio.run(main()) == [True, False]
    assert "".join(keyboard.questions).count("Allow it?") == 2


def test_an_interrupted_question_leaves_the_terminal_as_it_was(keyboard: Keyboard) -> None:
    async def main() -> None:
        asking = asyncio.ensure_future(Approvals(interactive=True)(ApprovalRequest(SPECS["spend_it"], {})))
        await asyncio.sleep(0.2)
        assert keyboard.questions
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    before = termios.tcgetattr(keyboard.ours)
    with redirect_stderr(keyboard):
        asyncio.run(main())
    assert termios.tcgetattr(keyboard.ours) == before


@pytest.mark.parametrize("error", [EOFError, KeyboardInterrupt])
def test_ctrl_c_and_ctrl_d_at_the_question_are_a_no(error: type[BaseException]) -> None:
    async def ask(question: str, choices: Sequence[str]) -> str:
        raise error

    refused = verdict(Approvals(interactive=True, ask=ask), "execute_it")
    assert (refused.allow, refused.reason) == (False, "the person said no")


def test_an_answer_for_the_session_covers_the_same_arguments_only() -> None:
    questions, ask = answering("s", "n")
    approvals = Approvals(interactive=True, ask=ask)
    assert verdict(approvals, "execute_it", {"what": "ls *"}).allow
    assert verdict(approvals, "execute_it", {"what": "ls *"}).allow
    assert not verdict(approvals, "execute_it", {"what": "ls /etc"}).allow
    assert "execute_it with exactly these arguments" in questions[0]
    assert len(questions) == 2
    assert not answers_file().exists()


def test_an_answer_for_always_is_a_rule_in_the_persons_own_folder(home: Path) -> None:
    _, ask = answering("a", "always")
    approvals = Approvals(interactive=True, ask=ask)
    awkward = {"what": "rm [x]\n\u2028\x07 'quoted' \U0001f600: # {}"}
    assert verdict(approvals, "execute_it", awkward).allow
    assert verdict(approvals, "spend_it").allow
    assert home not in answers_file().parents
    later = Approvals(load_settings().approvals)
    assert verdict(later, "execute_it", awkward).allow
    assert verdict(later, "spend_it").allow
    assert not verdict(later, "execute_it", {"what": "rm x"}).allow
    rules = [*load_settings().approvals, {"tool": "spend_*", "do": "deny"}]
    assert not verdict(Approvals(rules, yes=True), "spend_it").allow


@pytest.mark.parametrize(
    "arguments", [{"what": "x" * 3000}, {"what": "curl -H 'Authorization: Bearer abcdefghijklmnop123456'"}]
)
def test_what_no_file_should_hold_is_not_offered_for_always(arguments: dict[str, Any]) -> None:
    questions, ask = answering("a")
    assert not verdict(Approvals(interactive=True, ask=ask), "execute_it", arguments).allow
    assert "always" not in questions[0]
    assert not answers_file().exists()


def test_an_answer_that_cannot_be_kept_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("in the way")
    _, ask = answering("a")
    approvals = Approvals(interactive=True, ask=ask)
    context = CallContext("chat", "t", ("test",), approve=approvals)
    result = asyncio.run(handle_function_call("execute_it", {}, context))
    assert '"ok": false' in result
    assert "approvals.yaml" in result


TRAINING = {"environment": "gsm8k-mini", "profile": "cpu-demo", "backend": "trl", "model": "tiny"}


def training(
    rollouts: int = 100, dollars: float | None = 0.0, gpu_hours: float = 0.0, **other: str
) -> Estimate:
    return Estimate(dollars=dollars, gpu_hours=gpu_hours, scope=TRAINING | other | {"rollouts": rollouts})


@pytest.mark.parametrize("answer", ["s", "a"])
def test_an_answer_covers_only_the_training_that_was_shown(answer: str) -> None:
    questions, ask = answering(answer)
    approvals = Approvals(interactive=True, ask=ask)
    approved = training(100, dollars=1.234, gpu_hours=0.5)
    assert verdict(approvals, "spend_it", estimate=approved).allow
    assert (
        "spend_it with the same environment, profile, backend, model; no more rollouts, dollars, GPU hours"
        in questions[0]
    )
    if answer == "a":
        approvals = Approvals(load_settings().approvals)
    approvals._interactive = False  # nobody is there to ask any more
    for same_or_less in (approved, training(100, 1.239, 0.5), training(50)):
        assert verdict(approvals, "spend_it", estimate=same_or_less).allow
    for other in (
        training(environment="tool-math"),
        training(profile="h200-1gpu"),
        training(model="Qwen/Qwen3-0.6B"),
        training(backend="replay", file="x.yaml"),
        training(101),
        training(dollars=2.0),
        training(dollars=None),
        training(gpu_hours=0.6),
        None,
    ):
        assert not verdict(approvals, "spend_it", estimate=other).allow


def test_an_answer_kept_for_always_is_a_rule_that_a_person_can_read() -> None:
    _, ask = answering("a")
    assert verdict(Approvals(interactive=True, ask=ask), "spend_it", estimate=training(10_240)).allow
    assert (
        "- {tool: spend_it, scope: {environment: gsm8k-mini, profile: cpu-demo, backend: trl, model: tiny, "
        "rollouts: 10240, dollars: 0, gpu_hours: 0}, do: allow}\n" in answers_file().read_text()
    )


def test_an_unknown_price_that_was_approved_covers_no_known_one() -> None:
    _, ask = answering("s", "n")
    approvals = Approvals(interactive=True, ask=ask)
    for _ in range(2):
        assert verdict(approvals, "spend_it", estimate=training(dollars=None)).allow
    assert not verdict(approvals, "spend_it", estimate=training(dollars=900.0)).allow


def test_a_rule_written_by_hand_without_a_scope_means_every_call() -> None:
    approvals = Approvals([{"tool": "spend_it", "do": "allow"}])
    assert verdict(approvals, "spend_it", estimate=training(dollars=900.0)).allow
    bound = Approvals([{"tool": "spend_it", "scope": {"profile": "cpu-*", "dollars": 5}, "do": "allow"}])
    assert verdict(bound, "spend_it", estimate=training(dollars=5)).allow
    assert not verdict(bound, "spend_it", estimate=training(dollars=5.1)).allow


def test_a_refusal_by_a_rule_says_which_one_in_which_file() -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("approvals:\n  - {tool: spend_*, do: deny}\n")
    refused = verdict(Approvals(load_settings().approvals, yes=True), "spend_it")
    assert refused.reason == f"forbidden by the rule {{tool: spend_*, do: deny}} in {user_file()}"


DENY = {"tool": "spend_*", "do": "deny"}


def test_denied_is_denied_even_with_yes_and_for_what_reads() -> None:
    assert not verdict(Approvals([DENY], yes=True), "spend_it").allow
    assert not verdict(Approvals([{"tool": "read_it", "do": "deny"}]), "read_it").allow
    assert verdict(Approvals([{"tool": "execute_it", "do": "allow"}]), "execute_it").allow
    assert verdict(Approvals([{"tool": "*", "do": "allow"}, DENY]), "spend_it").allow


def test_rules_look_at_arguments() -> None:
    rules = [
        {"tool": "execute_it", "arguments": {"what": "git push*"}, "do": "deny"},
        {"tool": "execute_it", "arguments": {"what": "git *"}, "do": "allow"},
        {"tool": "*", "arguments": {"nowhere": "*"}, "do": "allow"},
    ]
    approvals = Approvals(rules)
    assert verdict(approvals, "execute_it", {"what": "git status\n"}).allow
    assert not verdict(approvals, "execute_it", {"what": "git push --force"}).allow
    assert not verdict(approvals, "execute_it", {"what": "GIT status"}).allow
    assert not verdict(approvals, "spend_it", {"what": "x"}).allow


@pytest.mark.parametrize(
    "rule",
    [
        {"tool": "x"},
        {"do": "allow"},
        {"tool": "x", "do": "yes"},
        {"tool": "x", "do": "allow", "args": {}},
        {"tool": ["x"], "do": "allow"},
        {"tool": "x", "do": "allow", "arguments": {"a": ["b"]}},
    ],
)
def test_a_malformed_rule_is_an_error(rule: dict[str, Any]) -> None:
    with pytest.raises(BadUsage):
        Approvals([rule])


def test_an_untrusted_folders_rules_only_make_stricter() -> None:
    folder = {"tool": "*", "do": "ask", "by": "folder"}
    assert not verdict(Approvals([folder, DENY], yes=True), "spend_it").allow
    assert not verdict(Approvals([folder]), "read_it").allow
    assert not verdict(Approvals([folder, {"tool": "*", "do": "allow", "by": "user"}]), "execute_it").allow


RULES = st.builds(
    Rule,
    tool=st.sampled_from(["*", "t*", "tool", "other"]),
    do=st.sampled_from(["allow", "ask", "deny"]),
    arguments=st.dictionaries(st.sampled_from("ab"), st.sampled_from(["*", "1", "x?", "[ab]*"]), max_size=2),
    by=st.sampled_from(["user", "trusted", "folder", "remembered", "session"]),
)
ARGUMENTS = st.dictionaries(
    st.sampled_from("abc"), st.one_of(st.integers(0, 2), st.sampled_from(["x1", "b"]))
)
DEFAULTS = st.sampled_from(["allow", "ask", "deny"])


@given(st.lists(RULES, max_size=6), ARGUMENTS, DEFAULTS)
def test_a_folders_rules_never_loosen_and_answers_never_lift_a_ban(
    rules: list[Rule], arguments: dict[str, Any], default: Any
) -> None:
    do, _ = decide(rules, "tool", arguments, default)
    without_folder, _ = decide([r for r in rules if r.by != "folder"], "tool", arguments, default)
    own = [r for r in rules if r.by in ("user", "trusted")]
    answered = any(r.by in ("session", "remembered") and r.fits("tool", arguments) for r in rules)
    first = next((r.do for r in own if r.fits("tool", arguments)), default)
    if not answered:
        assert STRICTNESS[do] >= STRICTNESS[without_folder]
        assert without_folder == first
    if first == "deny":
        assert do == "deny"


TEXTS = st.text(st.characters(codec=None), max_size=12) | st.text("*?[]!a-z\n", max_size=12)


@given(
    st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=3),
    st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=3),
)
def test_an_exact_rule_fits_its_own_call_and_no_other(one: dict[str, str], other: dict[str, str]) -> None:
    rule = exactly("tool", one, "session")
    assert rule.fits("tool", one)
    assert not rule.fits("tool2", one)
    same = all(name in other and as_text(other[name]) == as_text(one[name]) for name in one)
    assert rule.fits("tool", other) is same


def spec_with(parameters: dict[str, Any]) -> Any:
    return replace(SPECS["write_it"], name="write_file", parameters={"properties": parameters})


@pytest.mark.parametrize(
    ("arguments", "allow"),
    [
        ({"path": "{home}/runs/x.txt"}, True),
        ({"path": "{home}/../x.txt"}, False),
        ({"path": "{home}/runs/../spending.db"}, False),
        ({"path": "{home}"}, True),
        ({"path": "/etc/passwd"}, False),
        ({"path": "~/.bashrc"}, False),
        ({"path": "{home}/link/x"}, False),
        ({"path": "{home}x/y"}, False),
        ({"path": "x\0y"}, False),
        ({"where": "/etc/passwd"}, False),
        ({"files": ["{home}/a", "/b"]}, False),
        ({"options": {"output_dir": "/b"}}, False),
        ({"text": "/etc/passwd"}, True),
    ],
)
def test_writing_is_free_inside_the_home_folder_only(
    home: Path, arguments: dict[str, Any], allow: bool
) -> None:
    home.mkdir()
    (home / "link").symlink_to("/etc")
    put = {k: v.replace("{home}", str(home)) if isinstance(v, str) else v for k, v in arguments.items()}
    spec = spec_with({"where": {"type": "string", "format": "path"}})
    assert asyncio.run(Approvals(home=home)(ApprovalRequest(spec, put))).allow is allow


def test_a_home_folder_around_the_config_does_not_open_it(tmp_path: Path) -> None:
    request = ApprovalRequest(spec_with({}), {"path": str(answers_file())})
    assert not asyncio.run(Approvals(home=tmp_path)(request)).allow


def test_more_than_the_budgets_leave_is_refused_whoever_allows_it() -> None:
    def budget_left(estimate: Estimate) -> str | None:
        return "today's budget of $5.00 does not allow this" if (estimate.dollars or 0) > 5 else None

    questions, ask = answering("y")
    allow = [{"tool": "*", "do": "allow"}]
    for approvals in (
        Approvals(yes=True, budget_left=budget_left),
        Approvals(allow, budget_left=budget_left),
        Approvals(interactive=True, ask=ask, budget_left=budget_left),
    ):
        assert "$5.00" in verdict(approvals, "spend_it", estimate=Estimate(dollars=6.0)).reason
        assert not questions
        assert verdict(approvals, "spend_it", estimate=Estimate(dollars=4.0)).allow


def test_the_question_says_where_how_long_and_at_what_cost() -> None:
    def shown(estimate: Estimate | None) -> str:
        return describe_call(SPECS["spend_it"], {"what": "x"}, estimate, 100)[0]

    text = shown(Estimate("box-7", 5400.0, 1.3, 3.2, "two earlier runs"))
    for words in (
        "spend_it may take",
        'what = "x"',
        "where: box-7",
        "about 1 h 30 min",
        "about $3.20 (1.3 GPU hours)",
    ):
        assert words in text
    assert "estimated from: two earlier runs" in text
    unknown = shown(Estimate(basis="no earlier run"))
    assert "time: not known: no earlier run" in unknown
    assert "estimated from" not in unknown
    assert "time: not known\n" in shown(Estimate())
    assert "cost: 0" in shown(Estimate())
    assert "cost: unknown" in shown(Estimate(dollars=None))
    assert "cost: unknown" in shown(None)


@pytest.mark.parametrize("width", [40, 57, 80, 200])
@pytest.mark.parametrize("before", [0, 590, 2400])
def test_the_question_never_shows_a_secret_whatever_cuts_it(
    width: int, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "zq81-77ab-qx55-0c0c-very-long-secret-99"
    monkeypatch.setenv("ACME_TOKEN", secret)
    forget()
    value = "a" * before + secret + "b" * (1000 if before else 0)
    estimate = Estimate(what="w" * 290 + " " + secret, scope={"model": f"{secret}/x"})
    for whole in (False, True):
        text, _ = describe_call(SPECS["execute_it"], {"what": value}, estimate, width, whole)
        shown = re.sub(r"\n *\| ", "", text)
        assert not any(secret[i : i + 8] in shown for i in range(len(secret) - 8))
    forget()


def test_no_fact_is_pushed_out_or_looks_like_another() -> None:
    model = "gpt2 " + " " * 500 + "cost: 0 " + "x" * 5000
    scope: dict[str, str | int] = {"environment": "gsm8k", "model": model, "rollouts": 76_800}
    estimate = Estimate(dollars=None, what="train for 1200 steps of 64 rollouts", scope=scope)
    text, cut = describe_call(SPECS["spend_it"], {}, estimate, 80)
    lines = text.split("\n")
    facts = [line for line in lines if re.match(r"  [a-z]", line)]
    assert [fact.strip() for fact in facts[:3]] == [
        "what: train for 1200 steps of 64 rollouts",
        "rollouts: 76,800",
        "where: this computer",
    ]
    assert [fact for fact in facts if "cost:" in fact] == ["  cost: unknown"]
    assert '  environment: "gsm8k"' in facts
    assert cut
    assert any("left out here" in line for line in lines)
    assert "xxx" in describe_call(SPECS["spend_it"], {}, estimate, 80, whole=True)[0]


def test_a_long_argument_shows_head_tail_and_its_true_length() -> None:
    value = "begin" + "x" * 50_000 + "end"
    text, cut = describe_call(SPECS["execute_it"], {"what": value}, None, 80)
    assert cut
    assert "begin" in text
    assert 'end"' in text
    assert "its 50,010 characters" in text
    assert len(text) < 1600
    questions, ask = answering("v", "y")
    assert verdict(Approvals(interactive=True, ask=ask), "execute_it", {"what": value}).allow
    assert questions[1].replace(f"\n{GUTTER}", "").count("x" * 50_000) == 1


FORGED = st.text(st.characters(codec=None), max_size=300) | st.lists(
    st.sampled_from(
        [
            "\n",
            "\r",
            "\x1b[2K",
            "\x1b[A",
            "\u202e",
            "\u200b",
            "\u2028",
            "\u3164",
            "  where: this computer",
            " " * 70,
            "Allow it? ",
            "  cost: 0",
            "  | ",
            "e\u0301\u0301\u0301\u0301",
            "训练",
            "  ... 5 characters",
            "execute_it may",
        ]
    ),
    max_size=60,
).map("".join)


@given(
    st.dictionaries(
        st.sampled_from(["what", "where", "cost"]), st.one_of(FORGED, st.lists(FORGED, max_size=3))
    )
)
def test_no_argument_can_look_like_a_part_of_the_question(arguments: dict[str, Any]) -> None:
    estimate = Estimate("rented box", 60.0, 0.0, 12.0)
    text, _ = describe_call(SPECS["spend_it"], arguments, estimate, 80)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u3164\u2800]", text)
    lines = [line for line in text.splitlines() if not line.startswith(GUTTER)]
    own = [re.fullmatch(r"  (\w+) = .*", line) for line in lines]
    assert [found[1] for found in own if found] == list(arguments)
    rest = [
        line for line, found in zip(lines, own, strict=True) if not found and not line.startswith("  ... ")
    ]
    assert rest[-3:] == ["  where: rented box", "  time: about 1 min 00 s", "  cost: about $12.00"]
    assert rest[:-3] == [
        "spend_it may take this computer for a while, or cost money:",
    ]
