"""What each command of the chat does."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from rl_cli.cli.conversation import Conversation
from rl_cli.cli.event_lines import turns_text
from rl_cli.cli.output import print_table
from rl_cli.cli.slash import Slash, help_lines
from rl_cli.core.errors import BadUsage
from rl_cli.core.handwritten import short
from rl_cli.core.json_text import to_json
from rl_cli.runs.times import duration
from rl_cli.spending.units import UNITS, in_words
from tools.dispatcher import tool_specs

RUNS_SHOWN = 10


async def act(command: Slash, conversation: Conversation) -> bool:
    """Carries a command out. Returns whether the person wants to leave.

    Raises:
        RlCliError: It cannot be done; the chat goes on.
    """
    if command.name == "quit":
        return True
    if command.name == "compact":
        if said := await conversation.compact():
            conversation.display.notice(said)
    else:
        ACTIONS[command.name](conversation, command.argument)
    return False


def _help(conversation: Conversation, argument: str) -> None:
    lines = [
        *help_lines(),
        "Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new one.",
        "Ctrl-C ends a turn, not a run.",
    ]
    conversation.display.notice("\n".join(lines))


def _runs(conversation: Conversation, argument: str) -> None:
    from rl_cli.runs.store import list_runs

    rows = []
    for run in list_runs(conversation.assistant.home)[:RUNS_SHOWN]:
        summary = run.summary()
        steps = f"{summary['step']}/{summary['total_steps']}"
        rows.append([summary["id"], summary["state"], steps, summary["eval"]["final"], summary["reason"]])
    print_table(["run", "state", "step", "final", "reason"], rows, empty="no runs yet")


def _status(conversation: Conversation, argument: str) -> None:
    from rl_cli.cli.run_watch import run_line
    from rl_cli.runs.progress import progress_of
    from rl_cli.runs.store import find_run, list_runs

    home, say = conversation.assistant.home, conversation.display.notice
    session = conversation.assistant.session
    say(f"{conversation.answerer.policy.name}, session {session.id}, {turns_text(session.history.turns)}")
    wanted = argument or conversation.run_in_view() or conversation.assistant.state.get("run_id")
    if not wanted and not list_runs(home):
        say("no runs yet")
        return
    run = find_run(home, wanted or "latest")
    progress, state = progress_of(run), run.state()
    say(f"{run.id}  {run_line(str(state['state']), progress)}")
    if state.get("reason"):
        say(f"  reason: {state['reason']}")
    measured = [f"{k} {v:.3f}" for k, v in progress.eval.items() if k != "n" and v is not None]
    if measured:
        say(f"  test accuracy: {', '.join(measured)} on {progress.eval['n']} problems")
    for alert in progress.current_alerts:
        say(f"  alert ({alert.get('rule')}): {alert.get('message')}\n    {alert.get('action')}")


def _model(conversation: Conversation, argument: str) -> None:
    from rl_cli.cli.answerer import choose

    if not argument:
        conversation.display.notice(f"model: {conversation.answerer.who}")
        return
    name, _, address = argument.partition(" ")
    answerer = choose(name, address.strip() or None, conversation.settings)
    conversation.change_answerer(answerer)
    conversation.prepare()
    conversation.display.notice(f"{answerer.notice}, from the next request on")


def _approve(conversation: Conversation, argument: str) -> None:
    approvals, say = conversation.approvals, conversation.display.notice
    if argument in ("", "list"):
        rows = [
            [r.tool, to_json(dict(r.arguments)) if r.arguments else None, r.do, r.by] for r in approvals.rules
        ]
        print_table(["tool", "arguments", "do", "by"], rows, empty="no rules")
        say("Where no rule fits: reading is allowed, writing in RL_CLI_HOME too; the rest is asked.")
        return
    tools = tool_specs(conversation.assistant.toolsets)
    fitting = [spec for name, spec in tools.items() if fnmatchcase(name, argument)]
    known = [spec.name for spec in fitting if spec.risk != "leave"]
    if fitting and not known:
        raise BadUsage(f"{fitting[0].name} is asked each time: it leaves the sandbox")
    if not known:
        raise BadUsage(f"no tool fits '{short(argument)}'", "a name or a glob such as rl_start_*")
    approvals.allow_for_session(argument)
    say(f"Allowed in this session: {', '.join(known)}")


def _cost(conversation: Conversation, argument: str) -> None:
    spent = conversation.meter.spent()
    used = [in_words(unit, spent.of(unit)) for unit in UNITS if unit != "hours" and spent.of(unit)]
    said = ", ".join([*used, f"{duration(spent.hours * 3600)} of work"])
    conversation.display.notice(f"This session: {said}. All of it: rl-cli costs")


ACTIONS: dict[str, Callable[[Conversation, str], None]] = {
    "help": _help,
    "runs": _runs,
    "status": _status,
    "model": _model,
    "approve": _approve,
    "cost": _cost,
}
