"""Figures as text. Every number shown here stands in a tool's result, as it is or rounded to four digits."""

from __future__ import annotations

from typing import Any

from environments.policies.operator.fixed_sentences import translated
from environments.policies.operator.steps import Result, figure, text
from environments.policies.operator.wording import Voice, shorten

STATES = {
    "created": "已创建",
    "starting": "正在启动",
    "running": "运行中",
    "stopping": "正在停止",
    "finished": "已完成",
    "stopped": "已停止",
    "failed": "失败",
    "lost": "失联",
}
SEVERITIES = {"info": "提示", "warning": "警告", "critical": "严重"}
ENDED = ("finished", "stopped", "failed", "lost")


def show(value: object) -> str:
    """A figure with at most four significant digits; "?" where there is none."""
    number = figure(value)
    if number is None:
        return "?"
    return str(number) if isinstance(number, int) else f"{number:.4g}"


def steps_ago(steps: object) -> str:
    if steps == 0:
        return "just now"
    return f"{show(steps)} step{'' if steps == 1 else 's'} ago"


def duration(seconds: float, say: Voice) -> str:
    if seconds < 90:
        return say(f"{seconds:.0f} s", f"{seconds:.0f} 秒")
    if seconds < 5400:
        return say(f"{seconds / 60:.0f} min", f"{seconds / 60:.0f} 分钟")
    return say(f"{seconds / 3600:.1f} h", f"{seconds / 3600:.1f} 小时")


def state_name(run: dict[str, Any], say: Voice) -> str:
    state = text(run.get("state")) or "?"
    return say(state, STATES.get(state, state))


def run_name(run: dict[str, Any]) -> str:
    return text(run.get("id")) or "?"


def idle_zh(steps: object) -> str:
    """`steps_ago` in Chinese."""
    return "刚刚" if steps == 0 else f"{show(steps)} 步之前"


def is_replay(run: dict[str, Any]) -> bool:
    """Whether a run was played from a file, so that none of its figures was measured."""
    return run.get("backend") == "replay"


def replay_mark(run: dict[str, Any], say: Voice) -> str:
    return say(" [replay, nothing was trained]", "［回放，没有训练］") if is_replay(run) else ""


def settings_line(changes: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in changes.items())


def changed_line(changed: dict[str, Any]) -> str:
    """What rl_edit_config reported, as "grpo.steps 40 -> 60"."""
    parts = []
    for name, change in changed.items():
        pair = change if isinstance(change, dict) else {}
        parts.append(f"{name} {_value(pair.get('from'))} -> {_value(pair.get('to'))}")
    return ", ".join(parts)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def config_line(config: dict[str, Any], say: Voice) -> str:
    """The settings that decide a run, in one line."""
    steps, batch, group = (config.get(f"grpo.{name}") for name in ("steps", "batch_size", "group_size"))
    rate, model, seed = config.get("grpo.learning_rate"), config.get("model.name"), config.get("seed")
    tasks = batch // group if isinstance(batch, int) and isinstance(group, int) and group else None
    return say(
        f"model {model}, {show(steps)} steps of {show(tasks)} tasks x {show(group)} rollouts, "
        f"learning rate {_value(rate)}, seed {show(seed)}",
        f"模型 {model}，{show(steps)} 步，每步 {show(tasks)} 道题、每组 {show(group)} 个 rollout，"
        f"学习率 {_value(rate)}，种子 {show(seed)}",
    )


def environment_lines(rows: list[dict[str, Any]], say: Voice) -> str:
    lines = []
    for row in rows:
        line = f"- {text(row.get('name'))}: {text(row.get('description'))}"
        if row.get("trainable_here") is not True:
            line += say(" [not trainable here", " [本机无法训练")
            if why := translated(text(row.get("why_not")), say):
                line += say(f": {why}", f"：{why}")
            if stand_in := text(row.get("stand_in")):
                line += say(f"; stand-in: {stand_in}", f"；替代环境：{stand_in}")
            line += "]"
        lines.append(line)
    return "\n".join(lines)


def machine_line(machine: dict[str, Any], say: Voice) -> str:
    gpus = machine.get("gpus")
    count = len(gpus) if isinstance(gpus, list) else 0
    cpus, memory = show(machine.get("cpus")), show(machine.get("memory_gb"))
    return say(
        f"{cpus} CPUs, {memory} GB memory, GPUs: {count}", f"{cpus} 个 CPU，内存 {memory} GB，GPU：{count}"
    )


def sizes_line(described: Result, say: Voice) -> str:
    endless = say("endless", "无限")
    sizes = described.section("sizes")
    names = {
        "train": say("train", "训练"),
        "validation": say("validation", "验证"),
        "test": say("test", "测试"),
    }
    return ", ".join(
        f"{label} {endless if sizes[key] is None else show(sizes[key])}"
        for key, label in names.items()
        if key in sizes
    )


def progress_line(progress: dict[str, Any], say: Voice) -> str:
    """Where a run stands, e.g. "grpo step 12 of 40, about 30 s left"."""
    phase, step, total = text(progress.get("phase")), progress.get("step"), progress.get("total_steps")
    line = say(f"{phase} step {show(step)}", f"{phase} 第 {show(step)} 步")
    if total is not None:  # nobody says how many steps somebody else's run is to have
        line += say(f" of {show(total)}", f"，共 {show(total)} 步")
    if (eta := figure(progress.get("eta_seconds"))) is not None:
        line += say(f", about {duration(eta, say)} left", f"，约剩 {duration(eta, say)}")
    return line.strip()


def reward_line(progress: dict[str, Any], say: Voice) -> str:
    """The reward so far, "" before there is one."""
    if figure(progress.get("reward_last")) is None:
        return ""
    keys = ("reward_first", "reward_last", "reward_best", "signal_share")
    first, last, best, share = (show(progress.get(key)) for key in keys)
    idle = progress.get("steps_since_best")
    return say(
        f"reward {first} -> {last} (best {best} {steps_ago(idle)}), share of groups with signal {share}",
        f"奖励 {first} -> {last}（最好 {best}，{idle_zh(idle)}），有信号的组占比 {share}",
    )


def alert_lines(alerts: list[dict[str, Any]], say: Voice) -> str:
    return "\n".join(
        say(
            f"Alert {text(row.get('rule'))}{_severity(row, say)}: {text(row.get('message'))}",
            f"警报 {text(row.get('rule'))}{_severity(row, say)}：{text(row.get('message'))}",
        )
        + (
            say(f" (proposed: {action})", f"（建议：{action}）")
            if (action := text(row.get("action")))
            else ""
        )
        for row in alerts
    )


def _severity(alert: dict[str, Any], say: Voice) -> str:
    """Only what stands out."""
    severity = text(alert.get("severity"))
    if severity in ("", "warning"):
        return ""
    return say(f" ({severity})", f"（{SEVERITIES.get(severity, severity)}）")


def is_watched(run: dict[str, Any]) -> bool:
    """Whether the run is somebody else's, known from W&B only."""
    return run.get("backend") == "wandb"


def how_to_go_on(run: dict[str, Any], say: Voice) -> str:
    """How training of a run that is not finished can go on; "" where it cannot."""
    state, command = run.get("state"), f"rl-cli runs resume {run_name(run)}"
    if state not in ("stopped", "failed", "lost") or is_watched(run):
        return ""
    if state == "lost" and run.get("ended") is None:
        return say(
            f"Its trainer goes on unwatched. To watch over it again: {command}",
            f"训练进程仍在继续，但无人看管。重新接管：{command}",
        )
    if _is_worse(run):
        again = f"rl-cli runs start --config {text(run.get('dir'))}/run.yaml --set grpo.learning_rate=LOWER"
        return say(
            f"Its policy is worse than at the start: do not go on from there, but begin again: {again}",
            f"策略已比开始时更差，不要从检查点继续；请重新开始：{again}",
        )
    return say(f"To go on from its last good checkpoint: {command}", f"从最后一个好检查点继续：{command}")


def _is_worse(run: dict[str, Any]) -> bool:
    """Whether training destroyed the policy: its reward collapsed, or half of the accuracy is gone."""
    alerts, known = run.get("alerts"), run.get("eval")
    told = alerts if isinstance(alerts, list) else []
    if any(isinstance(alert, dict) and alert.get("rule") == "reward_collapse" for alert in told):
        return True
    evaluation = known if isinstance(known, dict) else {}
    initial, final = figure(evaluation.get("initial")), figure(evaluation.get("final"))
    return initial is not None and final is not None and initial - final >= 0.1 and final <= initial / 2


def logs_line(name: str, say: Voice) -> str:
    return say(f"Its logs: rl-cli runs logs {name}", f"日志：rl-cli runs logs {name}")


def status_text(status: Result, say: Voice) -> str:
    run, progress = status.section("run"), status.section("progress")
    lines = [
        f"{run_name(run)} ({text(run.get('environment'))}, {text(run.get('profile'))}): "
        f"{state_name(run, say)}{replay_mark(run, say)}"
    ]
    if run.get("state") in ENDED:
        if reason := translated(text(run.get("reason")), say):
            lines.append(say(f"Reason: {reason}", f"原因：{reason}"))
        if accuracy := accuracy_line(run.get("eval"), None, say):
            lines.append(accuracy)
        if how := how_to_go_on(run, say):
            lines.append(how)
        if run.get("state") in ("failed", "lost") and not is_watched(run):
            lines.append(logs_line(run_name(run), say))
    else:
        lines.append(progress_line(progress, say))
        if reward := reward_line(progress, say):
            lines.append(reward)
    if alerts := alert_lines(status.rows("alerts"), say):
        lines.append(alerts)
    said = status.section("wandb").get("disagreements")
    lines += [text(line) for line in said if text(line)] if isinstance(said, list) else []
    return "\n".join(lines)


def accuracy_line(evaluation: object, gain: object, say: Voice) -> str:
    """ "Accuracy on 400 test problems: initial 0.22 -> final 0.81, gain 0.59", as far as it is known."""
    known = evaluation if isinstance(evaluation, dict) else {}
    initial, final = figure(known.get("initial")), figure(known.get("final"))
    if initial is None and final is None:
        return ""
    none = say("not measured", "未测")
    before, after = (none if value is None else show(value) for value in (initial, final))
    line = say(
        f"Accuracy on {show(known.get('n'))} test problems: initial {before} -> final {after}",
        f"在 {show(known.get('n'))} 道测试题上的准确率：初始 {before} -> 最终 {after}",
    )
    if figure(gain) is not None:
        line += say(f", gain {show(gain)}", f"，提升 {show(gain)}")
    extra = [
        f"{say(english, chinese)} {show(known[key])}"
        for key, english, chinese in (
            ("untrained", "untrained", "未训练"),
            ("best", "best checkpoint", "最佳检查点"),
        )
        if figure(known.get(key)) is not None
    ]
    if not extra:
        return line
    return line + say(f" ({', '.join(extra)})", f"（{'，'.join(extra)}）")


def inference_line(row: dict[str, Any], say: Voice) -> str:
    """One model's figures of rl_test_inference."""
    tasks, rollouts, accuracy = show(row.get("tasks")), show(row.get("rollouts")), show(row.get("accuracy"))
    flat, parse = show(row.get("groups_without_signal")), show(row.get("parse_failures"))
    line = say(
        f"accuracy {accuracy} on {tasks} tasks ({rollouts} sampled rollouts), "
        f"share of groups without signal {flat}, "
        f"parse failures {parse}",
        f"{tasks} 道题（采样 {rollouts} 个 rollout）准确率 {accuracy}，无信号的组占比 {flat}，解析失败占比 "
        f"{parse}",
    )
    errors = row.get("errors")
    if isinstance(errors, dict) and errors:
        kinds = ", ".join(f"{kind} {show(count)}" for kind, count in errors.items())
        line += say(f", failed rollouts: {kinds}", f"，失败的 rollout：{kinds}")
    return line


def run_lines(rows: list[dict[str, Any]], say: Voice) -> str:
    lines = []
    for run in rows:
        known = run.get("eval")
        evaluation: dict[str, Any] = known if isinstance(known, dict) else {}
        accuracy = ""
        if figure(evaluation.get("final")) is not None:
            figures = f"{show(evaluation.get('initial'))} -> {show(evaluation.get('final'))}"
            accuracy = say(f", accuracy {figures}", f"，准确率 {figures}")
        step = say(
            f"step {show(run.get('step'))} of {show(run.get('total_steps'))}",
            f"第 {show(run.get('step'))} 步，共 {show(run.get('total_steps'))} 步",
        )
        lines.append(
            f"- {run_name(run)} ({text(run.get('environment'))}): {state_name(run, say)}, {step}{accuracy}"
            f"{replay_mark(run, say)}"
        )
        reason = translated(text(run.get("reason")), say)
        if reason and run.get("state") in ("failed", "lost"):
            lines[-1] += say(f": {shorten(reason, 200)}", f"：{shorten(reason, 200)}")
    return "\n".join(lines)


def checkpoint_lines(results: Result, say: Voice) -> list[str]:
    """Where the model lies: the best on validation and the last, with the step and test accuracy of each."""
    names = {
        "best on validation": say("best on validation", "验证最佳"),
        "last": say("last", "最后"),
        "played, without weights": say("played, without weights", "回放，没有权重"),
        "best on validation and last": say("best on validation and last", "验证最佳，也是最后"),
    }
    lines = []
    for row in results.rows("checkpoints"):
        step, accuracy = row.get("step"), figure(row.get("accuracy"))
        known = [] if not isinstance(step, int) else [say(f"step {step}", f"第 {step} 步")]
        known += [] if accuracy is None else [say(f"test {accuracy:.4f}", f"测试 {accuracy:.4f}")]
        what, path = names.get(text(row.get("what")), text(row.get("what"))), text(row.get("path"))
        more = say(f" ({', '.join(known)})", f"（{'，'.join(known)}）") if known else ""
        lines.append(say(f"Checkpoint, {what}{more}: {path}", f"检查点，{what}{more}：{path}"))
    if not lines and (path := text(results.data.get("checkpoint"))):
        lines.append(say(f"Checkpoint: {path}", f"检查点：{path}"))
    return lines
