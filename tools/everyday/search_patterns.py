"""What a search pattern and a glob may be, so that ripgrep, Python and grep find the same."""

from __future__ import annotations

import re

from tools.dispatcher import ToolError

LONGEST = 1000
"""Characters of a pattern or a glob."""
MOST_GLOBS = 100
CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "xdigit": "0-9a-fA-F",
    "word": r"\w",
}
"""POSIX classes, as Python writes them inside brackets."""
IN_GREP = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]"}
"""Inside the brackets of POSIX."""
NOT_EVERYWHERE = re.compile(r"\(\?(?:[=!]|<[=!]|P=|\(|>)|\\[1-9]|[*+?}]\+")
"""Looking around, references to groups, atomic groups, possessive quantifiers."""


def common_pattern(pattern: str) -> str:
    """A regular expression that Python and ripgrep read alike.

    Raises:
        ToolError: It is none, or asks for what only some engines have.
    """
    if len(pattern) > LONGEST:
        raise ToolError("invalid_pattern", f"the pattern is longer than {LONGEST} characters")
    escaped = re.sub(r"\\\\", "", pattern)
    if match := NOT_EVERYWHERE.search(escaped):
        raise ToolError(
            "invalid_pattern", f"'{match[0]}' is not known here", "search for less, and look at the lines"
        )
    pattern = re.sub(r"\[:(\w+):\]", lambda match: CLASSES.get(match[1], match[0]), pattern)
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        hint = "put a backslash before . ( ) [ ] { } * + ? | that stand for themselves"
        raise ToolError("invalid_pattern", f"the pattern cannot be read: {error}", hint) from error
    return pattern


def grep_pattern(pattern: str) -> str:
    """The same for `grep -E`, which finds the same lines.

    Lazy quantifiers become greedy ones: the same lines match.

    Raises:
        ToolError: It asks for what grep does not have.
    """
    out, at, inside = "", 0, False
    while at < len(pattern):
        two = pattern[at : at + 2]
        if two[0] == "\\" and len(two) == 2:
            out += _escape(two[1], inside)
            at += 2
            continue
        if not inside and pattern.startswith("(?", at):
            if not pattern.startswith("(?:", at):
                raise ToolError(
                    "invalid_pattern", f"'{pattern[at : at + 4]}' is not known to this sandbox's grep"
                )
            out, at = out + "(", at + 3
            continue
        if not inside and two in ("*?", "+?", "??", "}?"):
            out, at = out + two[0], at + 2
            continue
        if two[0] == "[" and not inside:
            inside = True
            start = "[^" if pattern.startswith("[^", at) else "["
            out, at = out + start, at + len(start)
            if pattern.startswith("]", at):
                out, at = out + "]", at + 1
            continue
        inside = inside and two[0] != "]"
        out, at = out + two[0], at + 1
    return out


def _escape(letter: str, inside: bool) -> str:
    if letter in IN_GREP:
        return IN_GREP[letter] if inside else f"[{IN_GREP[letter]}]"
    if letter.lower() in IN_GREP and not inside:
        return f"[^{IN_GREP[letter.lower()]}]"
    if letter == "t":
        return "\t"
    if letter == "b" and not inside:
        return r"\b"
    if letter.isalnum():
        raise ToolError("invalid_pattern", f"'\\{letter}' is not known to this sandbox's grep")
    return letter if inside else f"\\{letter}"


def expand_globs(glob: str) -> list[str]:
    """A glob with {a,b} in it, as globs without; none for "" (every file).

    Raises:
        ToolError: Its braces do not fit, or stand for too many.
    """
    done, left = [], [glob] if glob else []
    if len(glob) > LONGEST:
        raise ToolError("invalid_pattern", f"the glob is longer than {LONGEST} characters")
    while left:
        each = left.pop()
        match = re.search(r"\{([^{}]*)\}", each)
        if match:
            before, after = each[: match.start()], each[match.end() :]
            left += [before + part + after for part in reversed(match[1].split(","))]
        elif "{" in each or "}" in each:
            raise ToolError("invalid_pattern", f"the braces of the glob do not fit: {each[:100]}")
        else:
            done.append(each)
        if len(done) + len(left) > MOST_GLOBS:
            hint = "search for more than wanted, or more than once"
            raise ToolError("invalid_pattern", f"the braces stand for more than {MOST_GLOBS} globs", hint)
    return list(dict.fromkeys(done))


def glob_regex(glob: str) -> str:
    """A glob as a regular expression over a file's path from where the search began.

    Without a slash it is meant for the file's name in any folder. ** is any number of folders.
    """
    out, rest = ("" if "/" in glob else "(?:.*/)?"), glob.lstrip("/")
    while rest:
        if rest.startswith("**/"):
            out, rest = out + "(?:.*/)?", rest[3:]
        elif rest.startswith("**"):
            out, rest = out + ".*", rest[2:]
        elif rest[0] == "*":
            out, rest = out + "[^/]*", rest[1:]
        elif rest[0] == "?":
            out, rest = out + "[^/]", rest[1:]
        elif match := re.match(r"\[(!?)([^\]/]+)\]", rest):
            out += f"[{'^' if match[1] else ''}{re.escape(match[2]).replace(chr(92) + '-', '-')}]"
            rest = rest[match.end() :]
        else:
            out, rest = out + re.escape(rest[0]), rest[1:]
    return f"(?s:{out})"
