from __future__ import annotations

import json
import re
import subprocess
import tracemalloc
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rl_cli.core.files import write_json
from rl_cli.runs.outcome import (
    checkpoints,
    gain_interval,
    interval,
    is_right,
    pick_samples,
    rounded,
    text_summary,
)
from rl_cli.runs.reports.charts import chart, ticks
from rl_cli.runs.reports.markdown import as_markdown
from rl_cli.runs.reports.page import Page
from rl_cli.runs.reports.report import results, write_report, write_reports
from rl_cli.runs.settle import settle
from rl_cli.runs.store import RunDir, create_run
from tests.components import browser
from tests.runs.kit import replay_config, start, steps, until_over
from tests.runs.series import healthy, with_series

HOSTILE = "</pre></div><script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b[31m\ud800 & 'q\"</style>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attributes)))


def finished_run(home: Path) -> RunDir:
    """A run as one finds it on the disk, with hostile text wherever text can come from outside."""
    environment = {"name": "gsm8k-mini", "options": {"note": HOSTILE}}
    run = create_run(replay_config("demo", environment=environment), home)
    for row in with_series(healthy(40), "loss", ["NaN"]):
        run.append_metrics(row.pop("phase"), row.pop("step"), **row)
    for step, which, accuracy in ((0, "initial", 0.2225), (40, "best", 0.8075), (40, "final", 0.8075)):
        run.append_event("evaluation", which=which, split="test", n=400, accuracy=accuracy, step=step)
    run.append_event("warm_start", note="The warm start was deliberately imperfect.", path=HOSTILE)
    run.append_event("decision", by="assistant", what=HOSTILE, reason=HOSTILE)
    run.append_event("alert", rule="clipped", message=HOSTILE, action=HOSTILE, figures={})
    for step in range(1, 6):
        run.append_sample(
            step=step,
            task_id=HOSTILE,
            prompt=[{"role": "user", "content": HOSTILE}],
            completion=HOSTILE,
            reward=0.0,
        )
    (run.path / "checkpoints" / "step-40").mkdir()
    run.append_event("checkpoint", step=40, path="/somewhere/else/checkpoints/step-40")
    gone = {"pid": 1, "started": 1.0, "host": run.state()["host"]}
    changes = {"state": "running", "supervisor": gone, "started": run.state()["created"], "processes": {}}
    write_json(run.path / "state.json", {**run.state(), **changes})
    run.write_exit("trainer", 0, "finished", "all 40 steps done " + HOSTILE)
    settle(run)
    return run


def test_the_page_stands_alone_and_holds_hostile_text_as_text(home: Path) -> None:
    page = write_report(finished_run(home)).read_text("utf-8")
    tags = Tags()
    tags.feed(page)
    names = {tag for tag, _ in tags.seen}
    assert not names & {"script", "img", "link", "iframe", "object", "a"}
    assert not [name for _, attributes in tags.seen for name in attributes if name.startswith("on")]
    assert not re.search(r"https?://|url\(|@import", page)
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<style>") == 1


def test_markdown_holds_hostile_text_as_text(home: Path) -> None:
    run = finished_run(home)
    run.append_event("decision", by="x", what="[click](https://evil) `a` | b", reason="# no\n- no\n```\nno")
    text = write_reports(run, ["md"])[0].read_text("utf-8")
    outside = re.sub(r"^(```+)\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)(<[a-z/]|`)", outside)
    assert "\\[click\\](https://evil) \\`a\\` \\| b" in outside
    assert "# no - no" in outside
    assert "\x1b" not in text
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in rows}
    assert cells <= {3, 4, 5, 6, 7}
    for told in ("| Reward, mean | ▁", "## Alerts", "Its file plays a test accuracy of 0.2225, then 0.8075."):
        assert told in text


def test_markdown_escapes_only_what_would_be_taken_for_markdown() -> None:
    plain = (
        "W&B at http://127.0.0.1:9/x: grpo.learning_rate 1 -> 2, 3 * 4, 5 < 6, ~/runs, a|b, #1, +0.5, C:\\new"
    )
    page = Page(title="t", state="", about=plain, outcome="o")
    assert plain in as_markdown(page)
    taken = {
        "- a": "\\- a",
        "1. a": "1\\. a",
        ">a": "\\>a",
        "* a": "\\* a",
        "__a__": "\\_\\_a\\_\\_",
        "&lt;": "\\&lt;",
    }
    for text, escaped in taken.items():
        assert f"\n{escaped}\n" in as_markdown(Page(title="t", state="", about=text, outcome="o"))


def test_no_page_is_wider_than_a_phone(home: Path, tmp_path: Path) -> None:
    page = write_report(finished_run(home)).read_text("utf-8")
    wrap = tmp_path / "phone.html"
    wrap.write_text(
        f"<body><iframe id='phone' style='width:360px' srcdoc=\"{escape(page)}\"></iframe><script>"
        "addEventListener('load', () => { document.title = "
        "'wide ' + phone.contentDocument.documentElement.scrollWidth })</script>"
    )
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    seen = subprocess.run(
        [*command, "--dump-dom", wrap.as_uri()], capture_output=True, text=True, timeout=120
    )
    [width] = re.findall(r"<title>wide (\d+)</title>", seen.stdout)
    assert int(width) <= 360


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_many_steps_make_a_small_page_in_little_memory(home: Path, count: int) -> None:
    run = trained(home)
    with (run.path / "metrics.jsonl").open("w") as file:
        for step in range(1, count + 1):
            reward = 9.5 if step == 7_777 else step / count
            file.write(f'{{"phase":"grpo","step":{step},"reward/mean":{reward},"loss":0.1,"entropy":0.5}}\n')
    tracemalloc.start()
    page = write_report(run).read_text("utf-8")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(page) < 300_000
    assert peak < 8_000_000 + 200 * count
    assert "step 7777" not in page
    [reward] = re.findall(r'aria-label="Reward, mean: [^"]*">(.*?)</svg>', page)
    heights = [float(point.split(",")[1]) for point in re.findall(r'points="([^"]*)"', reward)[0].split()]
    assert min(heights) < 30


def test_a_resumed_run_tells_its_attempts_and_what_the_judge_saw(home: Path) -> None:
    run = trained(home)
    run.append_event("state", state="failed", reason="loss is NaN at grpo step 11")
    changes = {"grpo.learning_rate": 0.0001}
    run.append_event("resumed", attempt=2, step=10, checkpoint="checkpoints/step-10", changes=changes)
    figures = {"before": 0.3, "after": 0.9, "step": 12, "samples": [{"step": 12, "reward": 2.0}]}
    alert = {"rule": "reward_jump", "message": "it jumped", "action": "read", "severity": "critical"}
    run.append_event("alert", **alert, figures=figures)
    run.append_event(
        "decision", by="judge", what="ask", reason="odd", why="alert", evidence={"kl": 0.51234567}
    )
    run.append_sample(
        step=12, task_id="t", prompt="2 + 2?", completion="ha ha", reward=2.0, parts={"correct": 0}
    )
    page, text = write_report(run).read_text("utf-8"), write_reports(run, ["md"])[0].read_text("utf-8")
    for told in (
        "loss is NaN at grpo step 11",
        "step 10",
        "0.0001",
        "critical",
        "before 0.3, after 0.9, step 12",
    ):
        assert told in page
        assert told in text
    assert "at a check: alert; kl 0.5123" in text
    jump = text.partition("## Where the reward jumped")[2].partition("\n## ")[0]
    assert "2 + 2?" in jump
    assert "ha ha" in jump


def test_the_paired_test_of_initial_and_final_is_told(home: Path) -> None:
    run = trained(home)
    (run.path / "evaluations").mkdir(exist_ok=True)
    for which, right in (("initial", 10), ("final", 30)):
        run.append_event("evaluation", which=which, split="test", n=40, accuracy=right / 40, step=0)
        rows = [{"task_id": f"t{i}", "correct": i < right, "reward": None} for i in range(40)]
        (run.path / "evaluations" / f"{which}.jsonl").write_text("".join(map(to_line, rows)))
    evaluation = {"n": 40, "untrained": None, "initial": 0.25, "best": None, "final": 0.75}
    write_json(run.path / "state.json", {**run.state(), "eval": evaluation})
    page = write_report(run).read_text("utf-8")
    assert "Of 40 problems 20 are newly right and 0 newly wrong: difference +0.500" in page
    assert "p = 1.9e-06" in page


def to_line(row: dict[str, object]) -> str:
    return json.dumps(row) + "\n"


def test_the_page_says_what_happened(home: Path) -> None:
    page = write_report(finished_run(home)).read_text("utf-8")
    for text in (
        "Replay, nothing was trained: finished at step",
        "Its file plays a test accuracy of 0.2225, then 0.8075.",
        "deliberately imperfect",
        "nothing was trained",
        "Reward, mean",
        "assistant",
        "(trl in the profile)",
    ):
        assert text in page
    assert "GRPO added" not in page
    assert page.count("<div class='sample'>") == 3


def test_results_have_the_keys_of_the_tool(home: Path) -> None:
    run = finished_run(home)
    found = results(run)
    assert set(found) == {
        *("run", "eval", "gain", "report", "samples", "notes", "last_log_lines"),
        *("checkpoint", "checkpoint_last", "checkpoints"),
    }
    assert (found["gain"], found["eval"]["n"]) == (0.585, 400)
    assert found["checkpoint"] == found["checkpoint_last"] == str(run.path / "checkpoints" / "step-40")
    assert [c["what"] for c in found["checkpoints"]] == ["played, without weights"]
    assert [sample["step"] for sample in found["samples"]] == [1, 3, 5]
    assert "0.8075" in text_summary(run)


def trained(home: Path) -> RunDir:
    """A run of the trl backend, as it was created."""
    return create_run(replay_config(backend={"name": "trl", "file": None}), home)


def test_the_page_of_a_trained_run_says_how_to_read_load_and_repeat_it(home: Path) -> None:
    run = trained(home)
    for step in range(1, 41):
        run.append_metrics("grpo", step, loss=0.1, tokens=3000 * step, **{"seconds/step": 0.5})
    run.append_event("warm_start", source="cache", steps=300, gate=0.5390625, note="Imperfect.")
    run.append_event("decision", by="assistant", what="goes on", reason="reward 0.7421875 rises")
    known = {"mode": "offline", "state": "recorded", "rows": 40, "uploaded": 0}
    write_json(run.path / "tracking.json", known)
    run.append_sample(step=1, task_id="t", prompt="1 + 1?", completion="2", expected=2, reward=1.0)
    run.append_sample(step=1, task_id="t", prompt="1 + 1?", completion="3", expected=2, reward=0.0)
    for step, accuracy, which in ((30, 0.845, "best"), (60, 0.8625, "final"), (0, 0.29, "initial")):
        folder = run.path / "checkpoints" / f"step-{step}"
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"x" * 1000)
        (folder / "optimizer.pt").write_bytes(b"x" * 500)
        run.append_event("evaluation", which=which, split="test", n=400, accuracy=accuracy, step=step)
        if step:
            run.append_event("checkpoint", step=step, path=str(folder))
    evaluation = {"n": 400, "untrained": 0.0, "initial": 0.29, "best": 0.845, "final": 0.8625}
    changes = {"state": "finished", "step": 40, "eval": evaluation, "started": run.state()["created"]}
    write_json(run.path / "state.json", {**run.state(), **changes, "ended": run.state()["created"]})
    page = write_report(run).read_text("utf-8")
    for text in (
        "Test accuracy went from 0.2900 to 0.8625 (+0.5725) on 400 problems",
        "where GRPO ended, step 60",
        "Newcombe",
        f"from_pretrained(&#x27;{run.path}/checkpoints/step-30&#x27;)",
        f"rl-cli runs start --config {run.path}/run.yaml",
        "10,240 (40 steps of 256)",
        "120,000",
        "0.5 s, the mean of 40",
        "300 SFT steps, gate measure 0.539 (share of validation tasks that some sample solves), taken from",
        "reward 0.7422 rises",
        "expected answer 2",
        ">right<",
        ">wrong<",
        "checkpoints/step-30/</td><td class='number'>1,500",
        "offline: 40 rows recorded",
        f"To upload it, with a key (WANDB_API_KEY): rl-cli runs sync {run.id}",
    ):
        assert text in page, text
    assert page.count("1 + 1?") == 1
    assert "`" not in page


def test_each_checkpoint_is_named_with_its_own_accuracy(home: Path) -> None:
    run = trained(home)
    for step in (20, 30, 60):
        (run.path / "checkpoints" / f"step-{step}").mkdir()
        run.append_event("checkpoint", step=step, path=f"/elsewhere/step-{step}")
    assert [c.title() for c in checkpoints(run, run.events())] == ["last (step 60)"]
    run.append_event("evaluation", which="final", split="test", n=400, accuracy=0.8625, step=60)
    run.append_event("evaluation", which="best", split="test", n=400, accuracy=0.845, step=30)
    best, last = checkpoints(run, run.events())
    assert (best.title(), best.path.name) == ("best on validation (step 30, test 0.8450)", "step-30")
    assert (last.title(), last.path.name) == ("last (step 60, test 0.8625)", "step-60")
    assert f"checkpoint, last (step 60, test 0.8625): {last.path}" in text_summary(run)
    run.append_event("evaluation", which="best", split="test", n=400, accuracy=0.8625, step=60)
    assert [c.title() for c in checkpoints(run, run.events())] == [
        "best on validation and last (step 60, test 0.8625)"
    ]
    run.append_event("evaluation", which="best", split="test", n=400, accuracy=0.845, step=30)
    best.path.rmdir()
    assert [c.title() for c in checkpoints(run, run.events())] == ["last (step 60, test 0.8625)"]


def test_a_run_with_nothing_in_it_has_a_report_too(home: Path) -> None:
    run = create_run(replay_config("demo"), home)
    assert "nothing was evaluated" in write_report(run).read_text("utf-8")
    assert "created" in text_summary(run)


def test_a_failed_run_shows_the_end_of_its_log(runs: Path) -> None:
    run = start(runs, [steps(2), {"log": "<b>about to fail</b>"}, {"crash": "boom"}])
    until_over(run)
    page = write_report(run).read_text("utf-8")
    assert "&lt;b&gt;about to fail" in page
    assert "RuntimeError: boom" in page


def test_a_browser_shows_it(home: Path, tmp_path: Path) -> None:
    page = write_report(finished_run(home))
    shot = tmp_path / "page.pdf"
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--print-to-pdf={shot}",
        page.as_uri(),
    ]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert shot.stat().st_size > 20_000


def test_curves_break_at_what_is_not_finite_and_mark_it() -> None:
    figure = chart("Loss <x>", [(1, 0.5), (2, 0.4), (3, float("nan")), (4, 0.3), (5, 0.2)])
    assert figure.count("<polyline") == 2
    assert "✕" in figure
    assert "nan" not in figure.lower()
    assert "<x>" not in figure
    assert "✕</span> not a finite number" in figure
    assert "0.2</span>" in figure
    assert 'class="latest bad">NaN at step 3' in chart("dead", [(1, 0.5), (2, 0.4), (3, float("nan"))])
    assert "no finite figures" in chart("dead at once", [(1, float("nan"))])
    assert "no figures" in chart("empty", [])
    assert "<circle" in chart("one", [(1, 2.0)])


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3e-6, 2e-6), (17, 17), (0.1, 4321), (-5, -4)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    marks = ticks(low, high, 4)
    assert 1 <= len(marks) <= 6
    assert all(low - 1e-12 <= mark <= high + 1e-12 for mark in marks)


def test_intervals_and_samples() -> None:
    low, high = interval(0.8075, 400)
    assert (round(low, 3), round(high, 3)) == (0.766, 0.843)
    assert interval(0.0, 400)[0] == 0.0
    # Newcombe (1998), table II, method 10: 9/10 against 3/10, and 10/10 against 0/10
    assert [round(end, 4) for end in gain_interval(0.3, 0.9, 10)] == [0.1705, 0.8090]
    assert [round(end, 4) for end in gain_interval(0.0, 1.0, 10)] == [0.6075, 1.0]
    assert (rounded(0.8525, 3), rounded(0.5625, 3), rounded(0.29, 3)) == ("0.853", "0.563", "0.290")
    assert [s["step"] for s in pick_samples([{"step": i} for i in range(7)])] == [0, 3, 6]
    assert pick_samples([]) == []
    rows = [
        {"step": step, "reward": reward, "parts": {"correct": float(reward == 1.0)}}
        for step, reward in [(1, 0.1), (1, 1.0), (1, 1.0), (2, 0.0), (3, 1.0), (4, 0.1), (4, 0.0), (5, 1.0)]
    ]
    shown = [(s["step"], is_right(s)) for s in pick_samples(rows)]
    assert shown == [(1, True), (1, False), (3, True), (5, True)]


def test_the_report_of_a_run_that_only_wandb_knows_claims_nothing_of_ours(home: Path) -> None:
    run = trained(home)
    for step in range(5000, 5040):
        run.append_metrics("grpo", step, **{"reward/mean": step / 10_000, "seconds/step": 2.0})
    theirs = {"backend": "wandb", "environment": None, "profile": None, "model": None, "total_steps": None}
    reason = "W&B says crashed; the last figures came 3 min ago"
    ended = {"state": "lost", "reason": reason, "ended": run.state()["created"], "step": 5039}
    write_json(
        run.path / "state.json", {**run.state(), **theirs, **ended, "wandb_url": "https://w/a/b/runs/c"}
    )
    page, text = (path.read_text("utf-8") for path in write_reports(run))
    for told in (page, text):
        for absent in ("None", "Config", "To repeat it", "Accuracy on the test split"):
            assert absent not in told
    assert "Lost at step 5039 after" in page
    assert "W&amp;B says crashed; the last figures came 3 min ago" in page
    assert "https://w/a/b/runs/c" in page
    assert ">5010<" in page
