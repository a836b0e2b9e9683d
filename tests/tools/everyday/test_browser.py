"""A page on loopback is read and operated in headless Chromium, and only where that is allowed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import pytest

from tests.components import leave_out
from tests.processes import started
from tests.tools.everyday.site import serving
from tools.dispatcher import CallContext, handle_function_call
from tools.everyday import browser as browser_tools
from tools.everyday import browser_session
from tools.everyday.addresses import ALLOW
from tools.everyday.browser_session import close_session, why_not

WEBRTC = """<body>waiting<script>
const Peer = window.RTCPeerConnection, frame = document.body.appendChild(document.createElement("iframe"));
const names = [Peer, window.webkitRTCPeerConnection, frame.contentWindow.RTCPeerConnection];
document.body.append(names.every(name => name === undefined) ? "no WebRTC" : "WebRTC");
if (Peer) {
  const asking = new Peer({iceServers: [{urls: "stun:127.0.0.1:PORT"}]});
  asking.createDataChannel("x");
  asking.createOffer().then(offer => asking.setLocalDescription(offer));
  const peer = new Peer();
  peer.createDataChannel("x");
  peer.createOffer().then(async offer => {
    await peer.setLocalDescription(offer);
    const password = "ice-pwd:" + "a".repeat(24);
    const sdp = offer.sdp.replace(/setup:actpass/g, "setup:active").replace(/ice-pwd:.*/g, password);
    await peer.setRemoteDescription({type: "answer", sdp});
    const candidate = "candidate:1 1 udp 2122260223 127.0.0.1 PORT typ host";
    await peer.addIceCandidate({candidate, sdpMid: "0"});
  }).finally(() => setTimeout(() => document.body.append("tried"), 1000));
} else document.body.append("tried");
</script>"""


class Browsing:
    """The browser tools of one task."""

    def __init__(self) -> None:
        self.context = CallContext("rollout", "t", ("browser",), result_limit=1_000_000)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(await handle_function_call(name, arguments, self.context))
        return result

    async def text(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert result["ok"], result
        return str(result["text"])

    async def error(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert not result["ok"], result
        return str(result["error"]["type"])


def browse(test: Callable[..., Awaitable[None]], tasks: int = 1) -> None:
    """Runs a test with the tools of some tasks; afterwards no browser is left."""
    if why := why_not():
        leave_out(f"chromium with playwright ({why})")

    async def main() -> None:
        several = [Browsing() for _ in range(tasks)]
        try:
            await test(*several)
        finally:
            for each in several:
                await close_session(each.context.live)

    before = started()
    asyncio.run(main())
    left = started() - before
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def ref(text: str, what: str) -> int:
    match = re.search(rf"\[(\d+)\] {re.escape(what)}", text)
    assert match, text
    return int(match[1])


def test_a_page_is_read_and_operated(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(browser: Browsing) -> None:
        assert await browser.error("browser_snapshot") == "no_page"
        page = await browser.call("browser_open", url=f"{site}/form")
        assert (page["title"], page["status"], page["url"]) == ("Shop", 200, f"{site}/form")
        text = page["text"]
        assert "# Shop" in text
        assert "- Apples" in text
        assert "hidden words" not in text
        assert "abc" not in text
        assert 'textbox "Search for" value=""' in text
        assert 'options=["Any","Fruit"]' in text
        text = await browser.text("browser_click", ref=ref(text, 'button "Press"'))
        assert "You pressed it" in text
        text = await browser.text("browser_click", ref=ref(text, "checkbox"))
        text = await browser.text("browser_type", ref=ref(text, 'combobox "Kind"'), text="Fruit")
        text = await browser.text("browser_type", ref=ref(text, 'textbox "Search for"'), text="pears & plums")
        assert 'value="pears & plums"' in text
        found = await browser.call("browser_click", ref=ref(text, 'button "Go"'))
        assert found["title"] == "Found"
        assert '"q": "pears & plums"' in found["text"]
        assert '"kind": "Fruit"' in found["text"]
        assert '"exact": "on"' in found["text"]
        text = await browser.text("browser_back")
        assert "# Shop" in text
        text = await browser.text(
            "browser_type", ref=ref(text, 'textbox "Search for"'), text="figs", submit=True
        )
        assert '"q": "figs"' in text
        assert await browser.error("browser_click", ref=99) == "no_element"

    with serving() as (site, _):
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        browse(test)


def test_tasks_do_not_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(one: Browsing, other: Browsing) -> None:
        pages = await asyncio.gather(
            one.text("browser_open", url=f"{site}/form"), other.text("browser_open", url=f"{site}/article")
        )
        assert ["Shop" in page for page in pages] == [True, False]
        assert "Tides" in await other.text("browser_snapshot")
        await close_session(one.context.live)
        assert "Tides" in await other.text("browser_snapshot")
        assert await one.error("browser_snapshot") == "no_page"

    with serving() as (site, _):
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        browse(test, tasks=2)


def test_private_addresses_are_refused_to_pages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(browser: Browsing) -> None:
        for url in (f"{private}/form", private.replace("127.0.0.1", "localhost"), "http://[::1]:9/"):
            assert await browser.error("browser_open", url=url) == "private_address"
        assert await browser.error("browser_open", url="file:///etc/passwd") == "invalid_url"
        assert await browser.error("browser_open", url="chrome://version") == "invalid_url"
        redirected = f"{site}/to?url={quote(private)}/form"
        assert await browser.error("browser_open", url=redirected) == "private_address"
        text = await browser.text("browser_open", url=f"{site}/fetches?url={quote(private)}/form")
        while "waiting" in text:
            await asyncio.sleep(0.1)
            text = await browser.text("browser_snapshot")
        assert asked == []

    with serving() as (site, _), serving() as (private, asked):
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        browse(test)


def test_chromium_that_dies_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(browser: Browsing) -> None:
        await browser.text("browser_open", url=f"{site}/form")
        for process in started():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if "chrom" in process.name() and "--type=" not in " ".join(process.cmdline()):
                    process.kill()
        await asyncio.sleep(0.5)
        assert await browser.error("browser_snapshot") in ("browser", "no_page")
        assert "# Shop" in await browser.text("browser_open", url=f"{site}/form")

    with serving() as (site, _):
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        browse(test)


@pytest.mark.parametrize("removed", [True, False])
def test_a_page_sends_no_datagram_by_webrtc(monkeypatch: pytest.MonkeyPatch, removed: bool) -> None:
    """Pages have no WebRTC; if one got hold of it, Chromium would still send nothing."""

    async def test(browser: Browsing) -> None:
        html = WEBRTC.replace("PORT", str(udp.getsockname()[1]))
        text = await browser.text("browser_open", url=f"{site}/html?html={quote(html)}")
        assert ("no WebRTC" in text) == removed
        while "tried" not in text:
            await asyncio.sleep(0.1)
            text = await browser.text("browser_snapshot")
        with pytest.raises(BlockingIOError):
            udp.recv(1)

    with serving() as (site, _), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        if not removed:
            monkeypatch.setattr(browser_session, "NO_WEBRTC", "")
        browse(test)


DEEP = """<body><script>
let at = document.body;
for (let i = 0; i < 20000; i++) at = at.appendChild(document.createElement("div"));
at.textContent = "deep";
</script>"""
LARGE = """<body><script>
for (let i = 0; i < 21000; i++) document.body.appendChild(document.createElement("button")).textContent = i;
</script>"""
SPINS = "<p>spins<script>setTimeout(() => { for (;;); }, 200)</script>"


def test_no_page_is_in_the_way_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(browser: Browsing) -> None:
        deep = await browser.call("browser_open", url=f"{site}/html?html={quote(DEEP)}")
        assert deep["ok"] or "the page was closed, crashed or hangs" in deep["error"]["message"]
        text = await browser.text("browser_open", url=f"{site}/html?html={quote(LARGE)}")
        assert text.endswith("(the page is too large: not all of it is shown)")
        monkeypatch.setattr(browser_tools, "SNAPSHOT_SECONDS", 1.0)
        monkeypatch.setattr(browser_session, "ANSWER_SECONDS", 1.0)
        await browser.text("browser_open", url=f"{site}/html?html={quote(SPINS)}")
        await asyncio.sleep(0.3)
        assert await browser.error("browser_snapshot") == "browser"
        assert await browser.error("browser_snapshot") == "no_page"
        await browser.text("browser_open", url=f"{site}/html?html={quote(SPINS)}")
        await asyncio.sleep(0.3)
        assert "# Shop" in await browser.text("browser_open", url=f"{site}/form")

    monkeypatch.setattr(browser_tools, "LONGEST", 1_000_000)
    with serving() as (site, _):
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        browse(test)


def test_what_is_no_page_or_on_its_way_to_another_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(browser: Browsing) -> None:
        assert await browser.error("browser_open", url=f"{site}/file") == "download"
        text = await browser.text("browser_open", url=f"{site}/html?html=<a href={site}/file>file</a>")
        told = await browser.call("browser_click", ref=ref(text, "link"))
        while "download" not in told:
            told = await browser.call("browser_snapshot")
        assert "/file was offered" in told["download"]
        text = await browser.text("browser_open", url=f"{site}/html?html=<input>{leaving}")
        while (typed := await browser.call("browser_type", ref=ref(text, "textbox"), text="x"))["ok"]:
            pass
        assert typed["error"]["type"] in ("browser", "no_element")

    leaving = "<script>setTimeout(() => { location = '/slow?seconds=0.5' }, 300)</script>"
    with serving() as (site, _):
        monkeypatch.setenv(ALLOW, urlsplit(site).netloc)
        browse(test)
