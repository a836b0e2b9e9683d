"""The command `rl-cli`: finds the command's module, runs it, turns errors into one line and an exit code.

A command is a module `rl_cli.cli.NAME` that exposes `app`, made by `rl_cli.cli.app.group(help)` (subcommands)
or `single()` (one command), and a line in COMMANDS below. Modules are imported only when their command is
called, and `rl-cli --help` imports none of them; still, a module imports heavy things inside its functions.

A command function raises `RlCliError` for what a person should read, `typer.Exit(code)` to end with a code,
and prints results to stdout; everything else (progress, warnings) goes to stderr. It returns nothing.
"""

from __future__ import annotations

import errno
import gc
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from rl_cli.core.errors import BadUsage, RlCliError, did_you_mean
from rl_cli.core.extras import explain_missing_module
from rl_cli.core.files import explain_os_error
from rl_cli.core.packages import check_packages
from rl_cli.core.printable import printable
from rl_cli.core.redaction import redact_stream

COLLECTED_AFTER = 10_000
"""New objects after which the garbage collector looks at them: a tenth of a start was spent on looking."""
COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("rl_cli.cli.ask", "Ask the assistant for something, e.g. to train a model."),
    "chat": ("rl_cli.cli.chat", "Talk with the assistant; go on with an earlier session."),
    "sessions": ("rl_cli.cli.sessions", "List, show and export the conversations that were held."),
    "costs": ("rl_cli.cli.costs", "Show what was spent, what is reserved, and the budgets."),
    "envs": ("rl_cli.cli.envs", "List and describe the environments a model can learn."),
    "runs": ("rl_cli.cli.runs", "Start, watch, resume, stop, report and compare training runs."),
    "monitor": ("rl_cli.cli.monitor", "Judge all live runs at their checks, without a chat."),
    "data": ("rl_cli.cli.data", "Make training data: batches, merging, compression, export, hygiene."),
    "tools": ("rl_cli.cli.tools", "List, describe and call the tools that the assistant uses."),
    "parse": ("rl_cli.cli.parse", "Take a model's text apart: content, reasoning, tool calls."),
    "grade": ("rl_cli.cli.grade", "Grade answers against gold numbers."),
    "config": ("rl_cli.cli.config", "Show and check the settings."),
    "doctor": ("rl_cli.cli.doctor", "Say what this machine has, what is missing, and how to get it."),
}
"""Command -> its module and its line in `rl-cli --help`."""

HELP = """\
Usage: rl-cli [--debug] COMMAND ...
       rl-cli "train a GSM8K model" [--yes] [--model M] [--seed S]     the same as: rl-cli ask "..."
       rl-cli                                            in a terminal, or with lines on a pipe: rl-cli chat

An assistant that runs reinforcement-learning post-training for you.

Commands:
{commands}

Options:
  --debug     Show the traceback of an error.
  --version   Show the version and exit.
  -h, --help  Show this message; `rl-cli COMMAND --help` says more about one command.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point of the console script. Ends the process with the exit code."""
    gc.set_threshold(COLLECTED_AFTER)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - closed by whoever started us
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stderr = redact_stream(sys.stderr)  # tracebacks, warnings, libraries' logs
    sys.exit(run(list(sys.argv[1:] if argv is None else argv)))


def run(argv: list[str]) -> int:
    """Runs one command line.

    Returns:
        The exit code: 0 done, 1 failed or incomplete, 2 bad usage, 3 refused, 130 interrupted.
    """
    argv, debug = _take_debug(argv)
    try:
        check_packages()
        code = _dispatch(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # whoever read our output has left, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        code = _report(error)
    return code if _all_written() else code or 1


def resolve(argv: list[str]) -> tuple[str, list[str]]:
    """Which command is meant, and its arguments.

    A command's name is that command. A single ASCII word that is none, or several of which the first is
    nearly one, is an error with suggestions. Anything else is a request to the assistant.
    """
    words = list(_until_option(argv))
    if words == ["help"]:
        return "help", []
    if words and words[0] in COMMANDS:
        return words[0], argv[1:]
    if words and words[0].isascii() and len(words[0].split()) == 1:
        import difflib

        typo = difflib.get_close_matches(words[0].casefold(), COMMANDS, n=1, cutoff=0.75)
        if len(words) == 1 or typo:
            hint = did_you_mean(words[0], _subcommands(words[0]) or list(COMMANDS))
            raise BadUsage(f"unknown command '{words[0]}'", f"{hint}; a request takes several words")
    return "ask", argv


def help_text() -> str:
    width = max(map(len, COMMANDS))
    return HELP.format(
        commands="\n".join(f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items())
    )


def _subcommands(word: str) -> list[str]:
    """The commands of groups that have this name, such as `data convert`."""
    import typer.main

    apps = {name: import_module(module).app for name, (module, _) in COMMANDS.items()}
    groups = {name: getattr(typer.main.get_command(app), "commands", {}) for name, app in apps.items()}
    return [f"{name} {word}" for name, commands in groups.items() if word in commands]


def _dispatch(argv: list[str]) -> int:
    if _only_options(argv) and (_at_a_terminal() or _lines_are_piped()):
        argv = ["chat", *argv]
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text(), end="")
        return 0
    if argv == ["--version"]:
        from importlib.metadata import version

        print(f"rl-cli {version('rl-flywheel')}")
        return 0
    name, arguments = resolve(argv)
    if name == "help":
        print(help_text(), end="")
        return 0
    module = import_module(COMMANDS[name][0])
    import typer.main

    command = typer.main.get_command(module.app)
    result = command.main(args=arguments, prog_name=f"rl-cli {name}", standalone_mode=False)
    return result if isinstance(result, int) else 0


def _all_written() -> bool:
    """Whether what was printed has arrived; what did not is dropped, or Python would try again at its end."""
    arrived = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            arrived = False
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return arrived


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _lines_are_piped() -> bool:
    """Standard input is a pipe, or a file that is not empty."""
    try:
        found = os.fstat(sys.stdin.fileno())
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size > 0)


def _report(error: Exception) -> int:
    """Prints one line and returns the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without its subcommand
        print(getattr(error, "format_message", lambda: "")(), file=sys.stderr)
        return 2
    explained = _explain(error)
    with suppress(OSError):  # it may be what is full
        print(printable(f"error: {' '.join(str(explained).split())}"), file=sys.stderr)
    return explained.exit_code


def _explain(error: Exception) -> RlCliError:
    if isinstance(error, RlCliError):
        return error
    if isinstance(error, ModuleNotFoundError) and (missing := explain_missing_module(error)):
        return missing
    if isinstance(error, OSError):
        nameless = error.filename is None and error.errno == errno.ENOSPC  # files of ours are named
        return explain_os_error(error, "the output" if nameless else None)
    if callable(getattr(error, "format_message", None)):  # typer's own: wrong options and arguments
        context: Any = getattr(error, "ctx", None)
        hint = f"see {context.command_path} --help" if context else None
        said = str(error.format_message())  # type: ignore[attr-defined]
        said = said.replace(": Value error, ", ": ").rstrip(".")  # pydantic's words, for choices
        return BadUsage(said, hint)
    if type(error).__name__ == "Abort":  # the end of input at a question
        return RlCliError("aborted")
    return RlCliError(
        f"unexpected {type(error).__name__}: {error}", "this is a bug; --debug shows where it happened"
    )


def _take_debug(argv: list[str]) -> tuple[list[str], bool]:
    end = argv.index("--") if "--" in argv else len(argv)
    kept = [a for i, a in enumerate(argv) if i >= end or a != "--debug"]
    return kept, len(kept) < len(argv)


def _only_options(argv: list[str]) -> bool:
    """Nothing, or nothing but options of the chat."""
    rest = list(argv)
    while rest:
        name, equals, _ = rest.pop(0).partition("=")
        if name in ("--yes", "-y", "--plain"):
            continue
        if name not in ("--model", "--base-url", "--seed", "--resume") or not (equals or rest):
            return False
        if not equals:
            rest.pop(0)
    return True


def _until_option(argv: list[str]) -> Sequence[str]:
    for i, word in enumerate(argv):
        if word.startswith("-"):
            return argv[:i]
    return argv
