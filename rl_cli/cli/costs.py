"""`rl-cli costs`: what was spent by day, session, run and model, and what the budgets leave."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from rl_cli.cli.app import JsonOption, single
from rl_cli.cli.event_lines import counted
from rl_cli.cli.output import print_json, print_table, say
from rl_cli.core.errors import BadUsage, did_you_mean
from rl_cli.core.settings import home, load_settings

app = single()

DAY_SECONDS = 86_400


@app.command()
def costs(
    session: Annotated[
        str | None, typer.Option("--session", help="Only of one session, or 'latest'.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only of one run, or 'latest'.")] = None,
    day: Annotated[
        str | None, typer.Option("--day", help="2026-11-29, today, yesterday or all. [default: today]")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Show what was spent: dollars, tokens, GPU hours; by session, run and model; and the budgets."""
    from rl_cli.spending.ledger import Ledger
    from rl_cli.spending.limits import Limits
    from rl_cli.spending.overview import overview

    ledger, limits = Ledger(home()), Limits.from_settings(load_settings())
    session, run = _known(ledger, "session", session), _known(ledger, "run", run)
    if day is None and not (session or run):
        day = "today"
    found = overview(ledger, limits, session, run, _date(day))
    if json_:
        print_json(found)
    else:
        _show(found)


def _known(ledger: Any, what: str, text: str | None) -> str | None:
    """The id that is meant: all of it, a unique beginning of it, or "latest"."""
    from rl_cli.spending.overview import known_ids

    if text is None:
        return None
    ids = known_ids(ledger, what)
    if not ids:
        raise BadUsage(f"no {what} has spent anything yet")
    found = ids[:1] if text == "latest" else [id for id in ids if id == text]
    found = found or [id for id in ids if text and id.startswith(text)]
    if len(found) > 1:
        raise BadUsage(f"'{text}' means {len(found)} {what}s", f"one of: {', '.join(found[:5])}")
    if not found:
        raise BadUsage(f"no {what} '{text}' has spent anything", did_you_mean(text, ids[:20]))
    return found[0]


def _date(text: str | None) -> str | None:
    if text in (None, "all"):
        return None
    if text in ("today", "yesterday"):
        back = DAY_SECONDS if text == "yesterday" else 0
        noon = time.mktime((*time.localtime()[:3], 12, 0, 0, 0, 0, -1))  # a day may have 23 or 25 hours
        return time.strftime("%Y-%m-%d", time.localtime(noon - back))
    try:
        return time.strftime("%Y-%m-%d", time.strptime(text or "", "%Y-%m-%d"))
    except ValueError:
        raise BadUsage(f"'{text}' is no day", "for example --day 2026-11-29, today, yesterday, all") from None


def _show(found: dict[str, Any]) -> None:
    from rl_cli.spending.units import in_words

    total = found["total"]
    of = [f"session {found['session']}"] if found["session"] else []
    of += [f"run {found['run']}"] if found["run"] else []
    of += [found["day"]] if found["day"] else ["all days"]
    say(f"{', '.join(of)}: {', '.join(_spent(total))}")
    for name, what in (("reserved", "reserved for what is under way"), ("abandoned", "of that an estimate")):
        amounts = {unit: total[f"{name}_{unit}"] for unit in ("dollars", "tokens", "gpu_hours")}
        if any(amounts.values()):
            told = ", ".join(in_words(unit, amount) for unit, amount in amounts.items() if amount)
            why = " (abandoned: who spent it was ended before it was settled)" if name == "abandoned" else ""
            say(f"{what}: {told}{why}")
    if total["unpriced"]:
        say(f"{total['unpriced']} of unknown price, counted as $0")
    if found["budgets"]:
        print()
        print_table(["budget", "limit", "spent", "reserved", "used"], map(_budget_row, found["budgets"]))
    for plural in ("sessions", "runs", "models"):
        rows = [row for row in found[plural] if plural != "sessions" or _cost_anything(row)]
        if rows and (plural == "models" or not found[plural[:-1]]):
            print()
            columns = [plural[:-1], "dollars", "requests", "tokens", "GPU time", "time"]
            hours = "hours" if plural == "sessions" else "run_hours"
            print_table(columns, [_row(row, hours) for row in rows])
        free = sum(plural == "sessions" and _is_conversation(row) for row in found[plural] if row not in rows)
        if free and not found["session"]:
            say(f"{counted(free, 'sessions')} that cost nothing but time: rl-cli sessions list")


def _cost_anything(row: dict[str, Any]) -> bool:
    """Whether a session took more than the assistant's time."""
    return any(row[unit] for unit in ("dollars", "tokens", "gpu_hours"))


def _is_conversation(row: dict[str, Any]) -> bool:
    """Whether `rl-cli sessions` knows it; batches and compressions do not begin with the date."""
    return bool(row["id"][:8].isdecimal())


def _budget_row(row: dict[str, Any]) -> list[str]:
    from rl_cli.spending.units import in_words

    amounts = [in_words(row["unit"], row[name]) for name in ("limit", "spent", "reserved")]
    return [f"{row['scope']} {row['name']}", *amounts, f"{row['share']:.0%}"]


def _spent(total: dict[str, Any]) -> list[str]:
    """What was spent, in words; what is nothing is left out, but for the dollars."""
    from rl_cli.spending.units import in_words, money, time_in_words

    asked = total["tokens"] or total["requests"]
    parts = [f"{total['tokens']:,} tokens in {total['requests']:,} requests"] if asked else []
    parts += [in_words("gpu_hours", total["gpu_hours"])] if total["gpu_hours"] else []
    times = (("hours", "of the assistant's work"), ("run_hours", "of runs"))
    parts += [f"{time_in_words(total[unit])} {what}" for unit, what in times if total[unit]]
    return [money(total["dollars"]), *parts]


def _row(row: dict[str, Any], hours: str) -> list[Any]:
    from rl_cli.spending.units import money, time_in_words

    figures = [money(row["dollars"]), row["requests"], f"{row['tokens']:,}"]
    return [row["id"], *figures, *(time_in_words(row[name]) for name in ("gpu_hours", hours))]
