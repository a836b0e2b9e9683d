"""Comparing runs by their accuracy on the test split."""

from __future__ import annotations

import math
from typing import Any

from environments.policies.operator import names
from environments.policies.operator.answers import is_replay, replay_mark, run_name, show, state_name
from environments.policies.operator.conversation import Conversation
from environments.policies.operator.intents import Compare
from environments.policies.operator.steps import Call, Declined, Procedure, figure, must, text
from environments.policies.operator.wording import Voice, shorten

MOST = 5
"""Runs in one comparison."""
SIGNIFICANT = 0.05
"""Below this chance of as large a difference, one run is called better."""


def compare(intent: Compare, say: Voice, conversation: Conversation) -> Procedure:
    listing = yield from must(Call("rl_list_runs", {}, say("Looking up the runs.", "查看运行列表。")))
    rows = [row for row in listing.rows("runs") if text(row.get("id"))]
    by_id = {text(row["id"]): row for row in rows}
    found, unknown = names.runs(intent.subject, rows)
    if unknown:
        said = shorten(", ".join(unknown))
        none = say(
            f"There is no run {said}. Newest: {', '.join([*by_id][:MOST])}",
            f"没有运行 {said}。最新的：{', '.join([*by_id][:MOST])}",
        )
        return Declined(none)
    newest = [run_id for run_id in by_id if run_id not in found]
    chosen = [*found, *newest[: max(0, (intent.count if not found else 2) - len(found))]][:MOST]
    if len(chosen) < 2:
        few = say(
            f"{_number_of_runs(len(rows))}, and a comparison needs two.",
            f"只有 {len(rows)} 个运行，比较至少需要两个。",
        )
        return Declined(few)
    entries = []
    for run_id in chosen:
        result = yield Call(
            "rl_get_results",
            {"run_id": run_id},
            say(f"Reading the results of {run_id}.", f"读取 {run_id} 的结果。"),
        )
        # A run without results (still going, failed early) is compared by what the list says.
        entries.append((result.section("run"), result.section("eval")) if result.ok else (by_id[run_id], {}))
    lines = [run_line(run, evaluation, say) for run, evaluation in entries]
    return "\n".join([*lines, (yield from verdict(entries, say))])


def verdict(entries: list[tuple[dict[str, Any], dict[str, Any]]], say: Voice) -> Procedure:
    """Which run is better, or why that cannot be said: tested on the same problems where that is possible."""
    tested: dict[str, Any] = {}
    if pair := comparable(entries):
        better, other = pair
        asked = say(
            f"Testing {better} against {other} on the same test problems.",
            f"在相同的测试题上检验 {better} 与 {other}。",
        )
        tested = (yield Call("rl_get_results", {"run_id": better, "against": other}, asked)).section("paired")
    return _by_pairs(tested, say) if figure(tested.get("p")) is not None else _by_accuracy(entries, say)


def comparable(entries: list[tuple[dict[str, Any], dict[str, Any]]]) -> tuple[str, str] | None:
    """The best run and the second; None where none can be called better."""
    if any(is_replay(run) for run, _ in entries) or len({text(r.get("environment")) for r, _ in entries}) > 1:
        return None
    finals = [(figure(evaluation.get("final")), run_name(run)) for run, evaluation in entries]
    known = sorted(((final, name) for final, name in finals if final is not None), reverse=True)
    return (known[0][1], known[1][1]) if len(known) == len(finals) else None


def run_line(run: dict[str, Any], evaluation: dict[str, Any], say: Voice) -> str:
    if figure(evaluation.get("initial")) is None and figure(evaluation.get("final")) is None:
        steps = f"{show(run.get('step'))}/{show(run.get('total_steps'))}"
        return say(
            f"- {run_name(run)} ({text(run.get('environment'))}, {state_name(run, say)}, step {steps}): "
            f"not evaluated{replay_mark(run, say)}",
            f"- {run_name(run)}（{text(run.get('environment'))}，{state_name(run, say)}，步数 {steps}）："
            f"没有评估{replay_mark(run, say)}",
        )
    figures = f"{show(evaluation.get('initial'))} -> {show(evaluation.get('final'))}"
    n, steps = show(evaluation.get("n")), f"{show(run.get('step'))}/{show(run.get('total_steps'))}"
    return say(
        f"- {run_name(run)} ({text(run.get('environment'))}, {state_name(run, say)}, step {steps}): "
        f"accuracy {figures} on {n} test problems{replay_mark(run, say)}",
        f"- {run_name(run)}（{text(run.get('environment'))}，{state_name(run, say)}，步数 {steps}）：{n} "
        f"道测试题准确率 {figures}{replay_mark(run, say)}",
    )


def _by_accuracy(entries: list[tuple[dict[str, Any], dict[str, Any]]], say: Voice) -> str:
    """Which run is better by the accuracies alone, as if they were of different problems."""
    if played := [run_name(run) for run, _ in entries if is_replay(run)]:
        which = ", ".join(played)
        return say(
            f"Played from a file, nothing was trained: {which}. Figures that were not measured are not "
            f"comparable, so none is called better.",
            f"从文件回放、没有训练：{which}。这些数字不是测得的，不可比较，无法判定哪个更好。",
        )
    finals = [
        (figure(evaluation.get("final")), figure(evaluation.get("n")), run) for run, evaluation in entries
    ]
    known = [(final, n, run) for final, n, run in finals if final is not None and n]
    if len(known) < len(finals):
        return say(
            "Not all of them have a final accuracy, so none is called better.",
            "并非都有最终准确率，无法判定哪个更好。",
        )
    if len({text(run.get("environment")) for _, _, run in known}) > 1:
        return say(
            "They learn different environments, so their accuracies cannot be compared.",
            "它们的环境不同，准确率不能互相比较。",
        )
    (best, n, run), (second, m, _) = sorted(known, key=lambda entry: -entry[0])[:2]
    # Standard error of a difference of two independent proportions.
    error = math.sqrt(max(0.0, best * (1 - best) / n + second * (1 - second) / m))
    if best - second <= 2 * error:
        return say(
            f"{show(best)} and {show(second)} differ by no more than chance on so many problems (2 "
            f"standard errors: {show(2 * error)}).",
            f"{show(best)} 与 {show(second)} 的差异不超过该题数下的随机误差（2 个标准误："
            f"{show(2 * error)}）。",
        )
    return say(
        f"{run_name(run)} is better: {show(best)} against {show(second)} (2 standard errors: "
        f"{show(2 * error)}).",
        f"{run_name(run)} 更好：{show(best)} 对 {show(second)}（2 个标准误：{show(2 * error)}）。",
    )


def _by_pairs(tested: dict[str, Any], say: Voice) -> str:
    """What the test of two runs on the same problems says (`runs compare` says the same)."""
    better, other = text(tested.get("second")), text(tested.get("first"))
    n, gained, lost = (show(tested.get(name)) for name in ("n", "gained", "lost"))
    difference, low, high, p = (show(tested.get(name)) for name in ("difference", "low", "high", "p"))
    why = say(
        f"of {n} test problems {better} alone solves {gained} and {other} alone {lost}: difference "
        f"{difference}, 95 % interval {low} to {high}, p = {p} (exact McNemar test)",
        f"{n} 道测试题中，只有 {better} 做对的有 {gained} 道，只有 {other} 做对的有 {lost} 道：差 "
        f"{difference}，95% 区间 {low} 到 {high}，p = {p}（精确 McNemar 检验）",
    )
    if (figure(tested.get("p")) or 0.0) >= SIGNIFICANT:
        return say(f"They differ by no more than chance: {why}.", f"差异不超过随机误差：{why}。")
    return say(f"{better} is better: {why}.", f"{better} 更好：{why}。")


def _number_of_runs(count: int) -> str:
    if count == 0:
        return "There are no runs"
    return "There is 1 run" if count == 1 else f"There are {count} runs"
