"""Tools: a web page to be read as text and operated by numbers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.dispatcher import CallContext, ToolError, tool
from tools.everyday.addresses import check_reachable
from tools.everyday.browser_session import ACT_SECONDS, BrowserSession, session_of
from tools.everyday.guarded_proxy import REFUSED

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Page, Response

SNAPSHOT = Path(__file__).with_name("browser_snapshot.js")
OPEN_SECONDS = 30.0
SETTLE_SECONDS = 3.0
"""How long a page may go on loading before it is read as it is."""
SNAPSHOT_SECONDS = 6.0
"""It ends by itself after three, where the page lets it."""
OPTIONS = "element => [...element.options].map(option => option.label)"
LONGEST = 20_000
"""Characters of a snapshot."""
TITLE = "document.title.slice(0, 500)"


@tool(toolset="browser", risk="execute", deadline=120, exclusive=True)
async def browser_open(url: str, context: CallContext) -> dict[str, Any]:
    """Opens a web page and returns it as text; what can be operated has a number like [3].

    Args:
        url: Begins with http:// or https://.
    """
    await check_reachable(url)
    session = await session_of(context)
    page = await session.open_page()
    answer = await session.act(
        page.goto(url, wait_until="domcontentloaded", timeout=OPEN_SECONDS * 1000), OPEN_SECONDS
    )
    return await _shown(session, answer)


@tool(toolset="browser", deadline=60, exclusive=True)
async def browser_snapshot(context: CallContext, start: int = 0) -> dict[str, Any]:
    """Returns the open page as text, as it is now, with new numbers.

    Args:
        start: The character to begin at, for a long page.
    """
    session, _ = await _open(context)
    return await _shown(session, start=start)


@tool(toolset="browser", risk="execute", deadline=60, exclusive=True)
async def browser_click(ref: int, context: CallContext) -> dict[str, Any]:
    """Clicks on something, and returns the page as it is then.

    Args:
        ref: Its number in the last snapshot.
    """
    session, page = await _open(context)
    element = await _element(session, page, ref)
    await session.act(element.click(timeout=ACT_SECONDS * 1000))
    return await _shown(session)


@tool(toolset="browser", risk="execute", deadline=60, exclusive=True)
async def browser_type(ref: int, text: str, context: CallContext, submit: bool = False) -> dict[str, Any]:
    """Writes a text into a field, in place of what is there, or chooses the option of that name.

    Args:
        ref: The field's number in the last snapshot.
        text: What to write.
        submit: Press Enter afterwards.
    """
    session, page = await _open(context)
    element = await _element(session, page, ref)
    if await session.act(element.evaluate("element => element.tagName")) == "SELECT":
        offered: list[str] = await session.act(element.evaluate(OPTIONS))
        if text not in offered:
            raise ToolError(
                "no_option", f"[{ref}] has no option {text!r:.100}", f"it has {', '.join(offered)[:500]}"
            )
        await session.act(element.select_option(label=text, timeout=ACT_SECONDS * 1000))
    else:
        await session.act(element.fill(text, timeout=ACT_SECONDS * 1000))
    if submit:
        await session.act(element.press("Enter", timeout=ACT_SECONDS * 1000))
    return await _shown(session)


@tool(toolset="browser", risk="execute", deadline=60, exclusive=True)
async def browser_back(context: CallContext) -> dict[str, Any]:
    """Goes back to the page before, and returns it."""
    session, page = await _open(context)
    answer = await session.act(
        page.go_back(wait_until="domcontentloaded", timeout=OPEN_SECONDS * 1000), OPEN_SECONDS
    )
    if page.url == "about:blank":  # what every page was before its first address
        await session.act(
            page.go_forward(wait_until="domcontentloaded", timeout=OPEN_SECONDS * 1000), OPEN_SECONDS
        )
        raise ToolError("no_page", "there is no page before this one")
    return await _shown(session, answer)


async def _open(context: CallContext) -> tuple[BrowserSession, Page]:
    session = await session_of(context)
    page = session.page
    if page is None:
        raise ToolError("no_page", "no page is open", "open one with browser_open")
    return session, page


async def _element(session: BrowserSession, page: Page, ref: int) -> ElementHandle:
    """What has a number: that very element, which may be gone a moment later."""
    found: list[ElementHandle] = await session.act(page.query_selector_all(f'[data-rl-cli-ref="{ref}"]'))
    if len(found) != 1:
        raise ToolError("no_element", f"there is no [{ref}] on the page", "take a new browser_snapshot")
    return found[0]


async def _shown(session: BrowserSession, answer: Response | None = None, start: int = 0) -> dict[str, Any]:
    from playwright.async_api import Error

    page = session.page
    if page is None:
        raise ToolError("no_page", "the page is closed", "open one with browser_open")
    with suppress(Error):  # it still loads: what is there by now is shown
        await page.wait_for_load_state("load", timeout=SETTLE_SECONDS * 1000)
    if answer is not None and (why := answer.headers.get(REFUSED)):
        said: str = await session.act(answer.text())
        raise ToolError("private_address" if why == "private" else "unreachable", said.strip()[:500])
    text: str = await session.act(page.evaluate(SNAPSHOT.read_text("utf-8")), SNAPSHOT_SECONDS)
    title: str = await session.act(page.evaluate(TITLE))
    told: dict[str, Any] = {
        "url": page.url,
        "title": title,
        "text": text[start : start + LONGEST],
    }
    if answer is not None:
        told["status"] = answer.status
    if session.offered:
        told["download"] = f"{session.offered} was offered as a file, which is not kept"
        session.offered = ""
    if start + LONGEST < len(text):
        told["more"] = f"{len(text)} characters in all: browser_snapshot with start={start + LONGEST}"
    return told
