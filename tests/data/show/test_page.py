"""The page of trajectories in a real browser: search, filters, and text that would be markup."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from rl_cli.core.messages import assistant, tool_call, tool_result, user
from tests.components import browser
from tests.data.rows_kit import READ, SEARCH, calling, plain, row, run_here, write_rows

HOSTILE = (
    "</script><script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "<!--<script>",
    "]]></style><svg onload=\"document.title='ran'\">",
    "javascript:document.title='ran'",
    "&lt;b&gt; ${alert(1)} `x` \u2028 \u202e \x00",
)


def page_of(folder: Path, rows: list[dict[str, Any]], *options: str) -> str:
    target = folder / "page.html"
    done = run_here(
        "data", "show", str(write_rows(folder / "rows.jsonl", rows)), "--html", str(target), *options
    )
    assert (done.code, done.err) == (0, "")
    return target.read_text("utf-8")


def seen_by(folder: Path, page: str, script: str) -> Any:
    """What `script` returns in the page in a browser; the page's policy is told to let it run."""
    driver = (
        f"const page = document, found = (() => {{ {script} }})();"
        "setTimeout(() => { const told = JSON.stringify({title: document.title, found});"
        "document.body.textContent = 'TOLD' + encodeURIComponent(told) + 'END' }, 500)"
    )
    allowed = f"'sha256-{b64encode(sha256(driver.encode()).digest()).decode()}'"
    driven = page.replace("script-src ", f"script-src {allowed} ").replace(
        "</body>", f"<script>{driver}</script></body>"
    )
    (folder / "driven.html").write_text(driven, "utf-8")
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    command += ["--dump-dom", (folder / "driven.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    told = unquote(done.stdout.partition("TOLD")[2].partition("END")[0])
    assert told, done.stdout[-2000:] + done.stderr[-2000:]
    result = json.loads(told)
    assert result["title"] == "rows.jsonl"  # hostile text sets another one
    return result["found"]


ROWS = [
    plain(1, marks=["no_reasoning"], score=0.2),
    calling(2, SEARCH, '{"city": "Oslo"}', "It rains.", score=0.9),
    calling(3, READ, '{"path": "notes.txt"}', completed=False, marks=["incomplete"]),
]
SHOWN = "const shown = () => [...page.querySelectorAll('.trajectory')].filter((n) => !n.hidden).map((n) => "
SHOWN += "n.querySelector('summary').textContent.split('.')[0]);"
SET = "const set = (id, value) => { const field = page.getElementById(id); field.value = value;"
SET += "field.dispatchEvent(new Event('input', {bubbles: true})); };"


def test_search_filters_and_folds(tmp_path: Path) -> None:
    found = seen_by(
        tmp_path,
        page_of(tmp_path, ROWS),
        f"""{SHOWN}{SET}
        const told = [shown()];
        const tries = [['search', 'oSLo'], ['search', 'rains'], ['search', 'nowhere'],
                       ['mark', 'no_reasoning'],
                       ['tool', 'read'], ['completed', 'false'], ['score', '0.5'], ['score', '0']];
        for (const [id, value] of tries) {{ set(id, value); told.push(shown()); set(id, ''); }}
        told.push(page.getElementById('count').textContent);
        const node = page.querySelectorAll('.trajectory')[1]; node.open = true;
        node.dispatchEvent(new Event('toggle'));
        const entries = [...node.querySelectorAll('details.entry')], folded = entries.map((n) => n.open);
        page.getElementById('unfold').click();
        return {{told, folded, open: entries.map((n) => n.open),
                heads: [...node.querySelectorAll('.role')].map((n) => n.textContent),
                texts: [...node.querySelectorAll('pre')].map((n) => n.textContent)}};""",
    )
    assert found["told"] == [
        ["1", "2", "3"],
        *(["2"], ["2"], [], ["1"], ["3"], ["3"], ["2"], ["1", "2"]),
        "3 of 3 trajectories",
    ]
    assert found["folded"] == [False, False]
    assert found["open"] == [True, True]
    assert found["heads"][2:5] == ["thinking", 'call search: {"city": "Oslo"}', "result search: It rains."]
    assert found["texts"] == [
        "Be brief.",
        "Look 2.",
        "Let me look.",
        '{"city": "Oslo"}',
        "It rains.",
        "Done.",
    ]


def test_hostile_text_is_text_and_even_markup_that_got_in_runs_nothing(tmp_path: Path) -> None:
    """The page's policy is a second wall: it holds where the first did not."""
    rows = []
    for number, text in enumerate(HOSTILE, 1):
        call = tool_call(text, text, text)
        said = [user(text), {**assistant(None, [call]), "reasoning": text}, tool_result(call, text)]
        rows.append(
            row(number, [*said, assistant(text)], [], model=text, marks=[text], metadata={text: text})
        )
    script = """for (const node of page.querySelectorAll('.trajectory')) {
        node.open = true; node.dispatchEvent(new Event('toggle')); }
        return {texts: [...page.querySelectorAll('.entry pre')].map((n) => n.textContent),
                made: page.querySelectorAll('main img, main script, main svg, main b').length,
                scripts: page.querySelectorAll('script').length};"""
    page = page_of(tmp_path, rows)
    broken = page.replace("<main", f"{HOSTILE[0].removeprefix('</script>')}{HOSTILE[1]}<main")
    assert broken != page
    found = seen_by(tmp_path, broken, script)
    assert found["texts"] == [text for text in HOSTILE for _ in range(5)]
    assert (found["made"], found["scripts"]) == (0, 3)  # the page's, ours, the one that got in


def test_a_file_with_a_name_that_is_no_text_has_a_page(tmp_path: Path) -> None:
    (odd := tmp_path / os.fsdecode(b"\xff.jsonl")).write_text(json.dumps(plain(1)))
    done = run_here("data", "show", str(odd), "--html", str(tmp_path / "page.html"), "--json")
    assert done.rows() == [{"trajectories": 1, "output": str(tmp_path / "page.html")}]
    assert (done.code, "<title>\ufffd.jsonl" in (tmp_path / "page.html").read_text("utf-8")) == (0, True)


@pytest.mark.soak
def test_a_thousand_long_trajectories_can_be_searched(tmp_path: Path) -> None:
    rows = [calling(n, SEARCH, '{"city": "Oslo"}', f"needle{n} " + "word " * 4000) for n in range(1, 1001)]
    found = seen_by(
        tmp_path, page_of(tmp_path, rows), f"{SHOWN}{SET} set('search', 'needle777 '); return shown();"
    )
    assert found == ["777"]
