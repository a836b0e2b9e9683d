"""Who may say yes to a call: the person's rules, a flag, an earlier answer, or the person at the terminal.

Of what a model writes or a tool returns, nothing is looked at here but a call's arguments, and those only as
what is asked for.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rl_cli.agent.approval_question import WILL, describe_call, visible
from rl_cli.agent.approval_rules import UNKNOWN, Do, Rule, decide, default_for, exactly, scope_of
from rl_cli.agent.terminal_question import ask_on_terminal
from rl_cli.core.cuts import head, one_line
from rl_cli.core.redaction import redact
from rl_cli.core.settings import answers_file, config_folder, folder_file, user_file
from rl_cli.core.settings import home as home_folder
from rl_cli.core.settings_edit import add_answer, on_one_line
from rl_cli.spending.ledger_file import NAME as LEDGER
from tools.spec import ApprovalRequest, Estimate, Verdict

Ask = Callable[[str, Sequence[str]], Awaitable[str]]
"""(question, keys of the answers) -> the line that was typed; "" for none."""

ONCE = ("y", "yes", "是", "好", "可以")
SESSION = ("s", "session", "本次会话")
ALWAYS = ("a", "always", "总是")
NO = ("", "n", "no", "否", "不", "不要")
REFUSAL = {"n": "no; any other words are a no too, and are passed on as the reason"}
MOST_REMEMBERED = 2000
"""Characters of a call's arguments that a rule in a file may hold; more cannot be read there."""


class Approvals:
    """The approval policy of one command or conversation; itself the `approve` of a CallContext.

    Where no rule fits: reading is allowed, writing inside the home folder too; writing elsewhere, executing,
    spending, and leaving the sandbox are asked, the last each time. Without a terminal to ask at, what is
    asked is refused. A call whose estimate is more than the budgets leave is refused, whoever allows it.

    Args:
        rules: As `Settings.approvals`, strongest first.
        yes: The person approved beforehand what would be asked (--yes), but no leaving of the sandbox; what
            is denied stays denied.
        interactive: There is a person to ask.
        ask: Asks the person; default: at the terminal.
        home: RL_CLI_HOME; default: the one that holds.
        budget_left: Why an estimate is more than the budgets leave, in one line, or None where it is not.
        one_call: There is no session in which a second call could come.

    Raises:
        BadUsage: A rule is malformed.
    """

    def __init__(
        self,
        rules: Iterable[Mapping[str, Any]] = (),
        yes: bool = False,
        interactive: bool = False,
        ask: Ask | None = None,
        home: Path | None = None,
        budget_left: Callable[[Estimate], str | None] | None = None,
        one_call: bool = False,
    ) -> None:
        self.rules = [Rule.from_settings(rule) for rule in rules]
        self._yes = yes
        self._interactive = interactive
        self._ask = ask or ask_on_terminal
        self._home = home or home_folder()
        self._budget_left = budget_left
        self._one_call = one_call
        self._one_question_at_a_time = asyncio.Lock()

    async def __call__(self, request: ApprovalRequest) -> Verdict:
        """Decides on one call; asks the person where it has to."""
        do, rule = self._decide(request)
        if do == "deny":
            return Verdict(False, f"forbidden by the rule {_named(rule)}")
        if request.estimate and self._budget_left:
            too_much = await asyncio.to_thread(self._budget_left, request.estimate)
            if too_much:
                return Verdict(False, too_much)
        risk = request.spec.risk
        if do == "allow" or (self._yes and risk != "leave"):
            return Verdict(True)
        if not self._interactive:
            beforehand = "--yes does not cover that" if risk == "leave" else "no --yes"
            return Verdict(False, f"it may {WILL[risk]}; there is no terminal to ask at, and {beforehand}")
        async with self._one_question_at_a_time:
            if self._decide(request)[0] == "allow":  # an answer meanwhile covers this call too
                return Verdict(True)
            return await self._ask_person(request)

    def allow_for_session(self, tool: str) -> None:
        """The person allows all calls of the tools that fit the pattern, for as long as this object lives."""
        self.rules.append(Rule.from_settings({"tool": tool, "do": "allow", "by": "session"}))

    def _decide(self, request: ApprovalRequest) -> tuple[Do, Rule | None]:
        spec, arguments = request.spec, request.arguments
        # what says who may do what, and what was spent already
        protected = (config_folder(), self._home / LEDGER, self._home / f"{LEDGER}-journal")
        default = default_for(spec, arguments, self._home, protected)
        return decide(self.rules, spec.name, arguments, default, request.estimate, spec.risk == "leave")

    async def _ask_person(self, request: ApprovalRequest) -> Verdict:
        spec, arguments = request.spec, request.arguments
        whole = False
        while True:
            width = shutil.get_terminal_size().columns - 1
            described, cut = describe_call(spec, arguments, request.estimate, width, whole)
            offers = _offers(request, self._one_call, cut)
            lines = [described, *(f"  {key}  {meaning}" for key, meaning in offers.items()), "Allow it?"]
            try:
                answer = (await self._ask("\n".join(lines), [*offers])).strip()
            except (EOFError, KeyboardInterrupt):
                answer = ""
            word = answer.casefold()
            if word == "v" and "v" in offers:
                whole = True
                continue
            if word in SESSION and "s" in offers:
                self.rules += _rules(request, "session")
                return Verdict(True)
            if word in ALWAYS and "a" in offers:
                for rule in _rules(request, "remembered"):
                    await asyncio.to_thread(add_answer, rule.to_settings())
                    self.rules.append(rule)
                return Verdict(True)
            return Verdict(True) if word in ONCE else Verdict(False, _reason(answer))


def _offers(request: ApprovalRequest, one_call: bool, cut: bool) -> dict[str, str]:
    """The keys that a person can press, and what each means for this call."""
    if request.spec.risk == "leave":
        return {"y": "yes, this once"} | ({"v": "show all of it first"} if cut else {}) | REFUSAL
    covers = _covered(request)
    offers = {"y": "yes, this once"} | ({} if one_call else {"s": f"yes, for this session: {covers}"})
    rule = _rules(request, "remembered")[0].to_settings()
    if len(str(rule)) <= MOST_REMEMBERED and redact(rule) == rule:
        offers["a"] = f"yes, always: {covers}; kept in {answers_file()}"
    if cut:
        offers["v"] = "show all of it first"
    return offers | REFUSAL


def _rules(request: ApprovalRequest, by: Literal["session", "remembered"]) -> list[Rule]:
    """What an answer for more than this call comes to."""
    spec = request.spec
    if spec.covers:
        return [exactly(tool, {}, by, request.estimate) for tool in spec.covers]
    return [exactly(spec.name, request.arguments, by, request.estimate)]


def _covered(request: ApprovalRequest) -> str:
    """What an answer for more than this call covers: the names of what it is bound to, shown above it."""
    name, scope = request.spec.name, scope_of(request.estimate)
    same = [key for key, value in scope.items() if isinstance(value, str) and value != UNKNOWN]
    most = [key.replace("gpu_", "GPU ") for key, value in scope.items() if not isinstance(value, str)]
    if request.spec.covers:
        return f"every call of {', '.join(request.spec.covers)} with the same {', '.join(same)}"
    bound = ["exactly these arguments"] if request.arguments else []
    bound += [f"the same {', '.join(same)}"] if same else []
    bound += [f"no more {', '.join(most)}"] if most else []
    return f"{name} with {'; '.join(bound)}" if bound else f"every call of {name}"


def _reason(answer: str) -> str:
    first, _, rest = answer.partition(" ")
    said = rest if first.casefold().rstrip(",.:;") in NO else answer
    if not said.strip() or said.casefold() in NO:
        return "the person said no"
    return f"the person said no: {visible(head(said.strip(), 500))}"


def _named(rule: Rule | None) -> str:
    """A rule as it stands in its file, and which file that is."""
    if rule is None:
        return ""
    files = {"user": user_file(), "remembered": answers_file()}
    files |= {"folder": folder_file(), "trusted": folder_file()}
    where = f" in {files[rule.by]}" if rule.by in files else ""
    return f"{visible(one_line(on_one_line(rule.to_settings()), 300))}{where}"
