"""Ending everything that a command has started, from inside its sandbox."""

from __future__ import annotations

import hashlib

# Whoever is started has two marks: a variable, and a limit on its resident memory, which Linux does not act
# on and no `env -i` or `setsid` takes away. Children are looked up before anything is killed: where no limit
# could be set, who cleared its environment is found by its parent only. Several rounds, since something may
# be forked meanwhile.
_KILL = """\
family() {{ for p in $(cat /proc/$1/task/*/children 2>/dev/null); do echo $p; family $p; done; }}
marked() {{ for f in $(grep -ls "$1" /proc/[0-9]*/environ); do f=${{f#/proc/}}; echo ${{f%/environ}}; done; }}
limited() {{
  for f in $(grep -ls {limits} /proc/[0-9]*/limits); do
    grep -qs '^State:.[ZX]' ${{f%limits}}status || {{ f=${{f#/proc/}}; echo ${{f%/limits}}; }}
  done
}}
round=0
while [ $round -lt 20 ]; do
  round=$((round + 1))
  all=
  for p in $(marked '{variable}={value}') $(limited); do all="$all $p $(family $p)"; done
  around=" $(echo $(marked '{around}={value}')) "
  for p in $around; do
    for child in $(cat /proc/$p/task/*/children 2>/dev/null); do
      case $around in *" $child "*) ;; *) all="$all $child $(family $child)";; esac
    done
  done
  [ -n "$all" ] || exit 0
  kill -KILL $all 2>/dev/null
  kill -CONT $around 2>/dev/null
  [ $round -lt 3 ] || sleep 0.05
done
exit 1
"""
TASKS = 2**51
"""KiB from which on the limits of whole tasks are; those of commands, which are below, may be set after."""


def kill_script(variable: str, value: str, around: str = "RL_CLI_NOBODY") -> str:
    """Ends all whose environment has a variable with a value that begins so, or that `mark_script` has marked
    with it, and their descendants.

    Exits with 1 where some are still there. Not found: who lost its parent and both marks, of which only a
    call of its own takes the limit away. Needs a /proc, `grep` and `kill`.

    Args:
        value: Letters, digits, dots and dashes.
        around: A variable of shells that are spared, with the same value: what they have started is ended,
            and they go on if they were stopped.
    """
    pattern = value.replace(".", "[.]")
    limits = (_limit(value) * 1024, (_limit(value) + TASKS) * 1024)
    lines = " ".join(f"-e '^Max resident set .* {limit} '" for limit in limits)
    return _KILL.format(variable=variable, value=pattern, around=around, limits=lines)


def mark_script(value: str, whole_task: bool = False) -> str:
    """Marks a shell and all that it starts from then on.

    Args:
        whole_task: What is marked with something else afterwards keeps this mark, too.
    """
    if whole_task:
        return f"ulimit -m {_limit(value) + TASKS} 2>/dev/null; "
    return f"ulimit -S -m {_limit(value)} 2>/dev/null; "


def _limit(value: str) -> int:
    """A number that no other value has."""
    return TASKS // 2 + int.from_bytes(hashlib.sha256(value.encode()).digest()[:6])
