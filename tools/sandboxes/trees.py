"""Ending everything that a command has started, from inside its sandbox."""

from __future__ import annotations

# Children are looked up before anything is killed: who cleared its environment is found by its parent only.
# Several rounds, since something may be forked meanwhile.
_KILL = """\
family() {{ for p in $(cat /proc/$1/task/*/children 2>/dev/null); do echo $p; family $p; done; }}
marked() {{ for f in $(grep -ls "$1" /proc/[0-9]*/environ); do f=${{f#/proc/}}; echo ${{f%/environ}}; done; }}
round=0
while [ $round -lt 20 ]; do
  round=$((round + 1))
  all=
  for p in $(marked '{variable}={value}'); do all="$all $p $(family $p)"; done
  around=" $(echo $(marked '{around}={value}')) "
  for p in $around; do
    for child in $(cat /proc/$p/task/*/children 2>/dev/null); do
      case $around in *" $child "*) ;; *) all="$all $child $(family $child)";; esac
    done
  done
  [ -n "$all" ] || exit 0
  kill -KILL $all 2>/dev/null
  [ $round -lt 3 ] || sleep 0.05
done
exit 1
"""


def kill_script(variable: str, value: str, around: str = "RL_CLI_NOBODY") -> str:
    """Ends all whose environment has a variable with a value that begins so, and their descendants.

    Exits with 1 where some are still there. Not found: who cleared its environment and lost its parent.
    Needs a /proc, `grep` and `kill`.

    Args:
        value: Letters, digits, dots and dashes.
        around: A variable of shells that are spared, with the same value: what they have started is ended.
    """
    pattern = value.replace(".", "[.]")
    return _KILL.format(variable=variable, value=pattern, around=around)
