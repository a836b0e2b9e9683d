"""The errors a person may see: one clear line, a hint, an exit code."""

from __future__ import annotations


class RlCliError(Exception):
    """Base of every error that is meant for a person.

    Args:
        message: One line that says what is wrong, naming the thing.
        hint: What to do about it, or None.
    """

    exit_code = 1
    """0 done, 1 the work failed, 2 bad usage or config, 3 refused, 130 interrupted."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class WorkFailed(RlCliError):
    """The work was started correctly and failed, or is incomplete."""

    exit_code = 1


class BadUsage(RlCliError):
    """A bad argument, an unknown name, a malformed config, a missing extra."""

    exit_code = 2


class Refused(RlCliError):
    """An approval or a budget says no."""

    exit_code = 3


def nearest(name: str, known: list[str] | tuple[str, ...], count: int = 3) -> list[str]:
    """The names in `known` that look most like `name`, best first (case-insensitive, at most `count`)."""
    import difflib

    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=count, cutoff=0.5)
    inside = [k for k in folded if name.casefold() in k and k not in close] if len(name) >= 3 else []
    return [folded[k] for k in [*close, *inside]][:count]


def did_you_mean(name: str, known: list[str] | tuple[str, ...]) -> str:
    """A hint with the nearest names, or with all of them where none is near."""
    close = nearest(name, known)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
