"""Tools: a web page to be read as text and operated by numbers."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.dispatcher import CallContext, ToolError, tool
from tools.everyday.addresses import check_reachable
from tools.everyday.browser_session import session_of
from tools.everyday.guarded_proxy import REFUSED

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

SNAPSHOT = Path(__file__).with_name("browser_snapshot.js")
OPEN_SECONDS = 30.0
ACT_SECONDS = 10.0
SETTLE_SECONDS = 3.0
"""How long a page may go on loading before it is read as it is."""
OPTIONS = "element => [...element.options].map(option => option.label)"
LONGEST = 20_000
"""Characters of a snapshot."""


@tool(toolset="browser", risk="execute", deadline=120, exclusive=True)
async def browser_open(url: str, context: CallContext) -> dict[str, Any]:
    """Opens a web page and returns it as text; what can be operated has a number like [3].

    Args:
        url: Begins with http:// or https://.
    """
    await check_reachable(url)
    session = await session_of(context)
    page = await session.open_page()
    answer = await _acted(page.goto(url, wait_until="domcontentloaded", timeout=OPEN_SECONDS * 1000))
    return await _shown(page, answer)


@tool(toolset="browser", deadline=60, exclusive=True)
async def browser_snapshot(context: CallContext, start: int = 0) -> dict[str, Any]:
    """Returns the open page as text, as it is now, with new numbers.

    Args:
        start: The character to begin at, for a long page.
    """
    return await _shown(await _page(context), start=start)


@tool(toolset="browser", risk="execute", deadline=60, exclusive=True)
async def browser_click(ref: int, context: CallContext) -> dict[str, Any]:
    """Clicks on something, and returns the page as it is then.

    Args:
        ref: Its number in the last snapshot.
    """
    page = await _page(context)
    element = await _element(page, ref)
    await _acted(element.click(timeout=ACT_SECONDS * 1000))
    return await _shown(await _page(context))


@tool(toolset="browser", risk="execute", deadline=60, exclusive=True)
async def browser_type(ref: int, text: str, context: CallContext, submit: bool = False) -> dict[str, Any]:
    """Writes a text into a field, in place of what is there, or chooses the option of that name.

    Args:
        ref: The field's number in the last snapshot.
        text: What to write.
        submit: Press Enter afterwards.
    """
    page = await _page(context)
    element = await _element(page, ref)
    if await element.evaluate("element => element.tagName") == "SELECT":
        offered: list[str] = await _acted(element.evaluate(OPTIONS))
        if text not in offered:
            raise ToolError(
                "no_option", f"[{ref}] has no option {text!r:.100}", f"it has {', '.join(offered)[:500]}"
            )
        await _acted(element.select_option(label=text, timeout=ACT_SECONDS * 1000))
    else:
        await _acted(element.fill(text, timeout=ACT_SECONDS * 1000))
    if submit:
        await _acted(element.press("Enter", timeout=ACT_SECONDS * 1000))
    return await _shown(await _page(context))


@tool(toolset="browser", risk="execute", deadline=60, exclusive=True)
async def browser_back(context: CallContext) -> dict[str, Any]:
    """Goes back to the page before, and returns it."""
    page = await _page(context)
    answer = await _acted(page.go_back(wait_until="domcontentloaded", timeout=OPEN_SECONDS * 1000))
    if page.url == "about:blank":  # what every page was before its first address
        await _acted(page.go_forward(wait_until="domcontentloaded", timeout=OPEN_SECONDS * 1000))
        raise ToolError("no_page", "there is no page before this one")
    return await _shown(page, answer)


async def _page(context: CallContext) -> Page:
    page = (await session_of(context)).page
    if page is None:
        raise ToolError("no_page", "no page is open", "open one with browser_open")
    return page


async def _element(page: Page, ref: int) -> Any:
    element = page.locator(f'[data-rl-cli-ref="{ref}"]')
    if await _acted(element.count()) != 1:
        raise ToolError("no_element", f"there is no [{ref}] on the page", "take a new browser_snapshot")
    return element


async def _shown(page: Page, answer: Response | None = None, start: int = 0) -> dict[str, Any]:
    from playwright.async_api import Error

    with suppress(Error):  # it still loads: what is there by now is shown
        await page.wait_for_load_state("load", timeout=SETTLE_SECONDS * 1000)
    if answer is not None and (why := answer.headers.get(REFUSED)):
        said = (await answer.text()).strip()
        raise ToolError("private_address" if why == "private" else "unreachable", said)
    text: str = await _acted(page.evaluate(SNAPSHOT.read_text("utf-8")))
    told: dict[str, Any] = {
        "url": page.url,
        "title": await page.title(),
        "text": text[start : start + LONGEST],
    }
    if answer is not None:
        told["status"] = answer.status
    if start + LONGEST < len(text):
        told["more"] = f"{len(text)} characters in all: browser_snapshot with start={start + LONGEST}"
    return told


async def _acted(step: Awaitable[Any]) -> Any:
    """Playwright's errors as a model should read them."""
    from playwright.async_api import Error

    try:
        return await step
    except Error as error:
        said = error.message.strip().splitlines()[0][:300]
        raise ToolError("browser", said, "take a browser_snapshot to see how the page is") from error
