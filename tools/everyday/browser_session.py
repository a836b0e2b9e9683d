"""A browser for the tasks of one event loop: one headless Chromium, in it one private context per task."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rl_cli.core.extras import install_command
from tools.dispatcher import CallContext, ToolError
from tools.everyday.guarded_proxy import GuardedProxy

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Download, Page, Playwright

INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OF_PLAYWRIGHT = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")
SWITCHES = (
    "--disable-dev-shm-usage",
    # WebRTC would go past the proxy; older versions know the second name.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
)
NO_WEBRTC = "delete globalThis.RTCPeerConnection; delete globalThis.webkitRTCPeerConnection"
"""In every frame, before its scripts; workers have none."""
ACT_SECONDS = 10.0
ANSWER_SECONDS = 3.0
"""In which a page that does not hang answers."""
CLOSE_SECONDS = 10.0
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "FONTCONFIG_FILE")
"""What Chromium sees of our environment: no keys."""
SESSION = "browser_session"
"""Key of what lives with a context."""


class BrowserSession:
    """One task's browser context, and the page that it looks at."""

    def __init__(self, context: BrowserContext, chromium: _Chromium) -> None:
        self._context = context
        self._chromium = chromium
        self._dropped: dict[Page, asyncio.Task[None]] = {}
        context.on("page", self._watch)
        self.offered = ""
        """The address of a file that the page offered for download; none is kept."""

    @property
    def gone(self) -> bool:
        """Whether Chromium ended under it."""
        browser = self._context.browser
        return browser is None or not browser.is_connected()

    @property
    def page(self) -> Page | None:
        """The page that was opened last, of those that are still open."""
        pages = [page for page in self._context.pages if page not in self._dropped]
        return pages[-1] if pages else None

    async def open_page(self) -> Page:
        """That page, or a new one where there is none or it hangs."""
        page = self.page
        if page is not None and not await self._answers(page):
            page = None
        return page or await self.act(self._context.new_page())

    async def act(self, step: Awaitable[Any], seconds: float = ACT_SECONDS) -> Any:
        """What a step on the page gives; a page that hangs or crashed is closed.

        Args:
            seconds: That the step may take by itself.

        Raises:
            ToolError: Playwright's error, as a model should read it ("browser"), or "download".
        """
        from playwright.async_api import Error

        page, why = self.page, "the page does not answer"
        try:
            async with asyncio.timeout(seconds + ANSWER_SECONDS):
                return await step
        except (Error, TimeoutError) as error:
            if isinstance(error, Error):
                why = (error.message.strip() or "no reason is given").splitlines()[0][:300]
            if "Download is starting" in why:
                offered, self.offered = self.offered or "this", ""
                hint = "download it in the terminal"
                raise ToolError("download", f"{offered} is a file, not a page", hint) from error
            ended = "crashed" in why or "has been closed" in why
            if page is not None and ended:
                self._drop(page)
            elif page is not None:
                await self._answers(page)
            if ended or page in self._dropped:
                why = f"the page was closed, crashed or hangs: {why}"
                raise ToolError("browser", why, "open another with browser_open") from error
            raise ToolError("browser", why, "take a browser_snapshot to see how the page is") from error

    async def close(self) -> None:
        await self._chromium.give_back(self._context)

    def _watch(self, page: Page) -> None:
        page.on("crash", self._drop)
        page.on("download", self._note)

    def _note(self, download: Download) -> None:
        self.offered = download.url[:300]

    def _drop(self, page: Page) -> None:
        """Closes a page that is of no use any more."""
        if page not in self._dropped:
            self._dropped[page] = asyncio.create_task(_closed(page), name="close-page")

    async def _answers(self, page: Page) -> bool:
        """Whether a page does; it is closed where not."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await page.evaluate("1")
        except TimeoutError:
            self._drop(page)
        except Error:  # it is on its way to another page, or crashed, which is told otherwise
            pass
        return page not in self._dropped


async def _closed(what: Page | BrowserContext) -> None:
    """Closes it, as far as that can be done in time."""
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):  # it is gone, or hangs until Chromium ends
        async with asyncio.timeout(CLOSE_SECONDS):
            await what.close()


async def session_of(context: CallContext) -> BrowserSession:
    """The task's session, opened when first asked for.

    Raises:
        ToolError: There is no browser here, or it does not start ("no_browser").
    """
    loop = asyncio.get_running_loop()
    chromium = _OF_LOOP.setdefault(loop, _Chromium())
    async with chromium.lock:
        session: BrowserSession | None = context.live.get(SESSION)
        if session is None or session.gone:
            session = BrowserSession(await chromium.new_context(), chromium)
            context.live[SESSION] = session
    return session


async def close_session(live: dict[str, Any]) -> None:
    """Closes the browser of a task, if it has one; the last one ends Chromium.

    Args:
        live: Of the contexts of its calls.
    """
    session: BrowserSession | None = live.pop(SESSION, None)
    if session is not None:
        await session.close()


def why_not() -> str | None:
    """Why there is no browser on this machine; None where there is one."""
    if find_spec("playwright") is None:
        return f"playwright is not installed: {install_command('browser')}"
    if find_chromium() is None:
        return "Chromium is not installed: python -m playwright install chromium, or your system's package"
    return None


def find_chromium() -> str | None:
    """The path of an installed Chromium."""
    folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path("~/.cache/ms-playwright").expanduser()
    bundled = (str(path) for pattern in OF_PLAYWRIGHT for path in sorted(Path(folder).glob(pattern)))
    return next(bundled, None) or next((path for name in INSTALLED if (path := shutil.which(name))), None)


class _Chromium:
    """Runs while there are contexts in it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._contexts: set[BrowserContext] = set()
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._proxy: GuardedProxy | None = None

    async def new_context(self) -> BrowserContext:
        """Call it with the lock held."""
        if self._browser is None or not self._browser.is_connected():
            await self._end()
            await self._launch()
        assert self._browser is not None
        context = await self._browser.new_context(accept_downloads=False, service_workers="block")
        await context.add_init_script(NO_WEBRTC)
        self._contexts.add(context)
        return context

    async def give_back(self, context: BrowserContext) -> None:
        async with self.lock:
            self._contexts.discard(context)
            await _closed(context)
            if not self._contexts:
                await self._end()

    async def _launch(self) -> None:
        if reason := why_not():
            raise ToolError("no_browser", f"there is no browser on this machine: {reason}")
        from playwright.async_api import Error, async_playwright

        self._proxy = GuardedProxy()
        address = await self._proxy.start()
        self._driver = await async_playwright().start()
        try:
            self._browser = await self._driver.chromium.launch(
                executable_path=find_chromium(),
                args=list(SWITCHES),
                proxy={"server": address, "bypass": "<-loopback>"},  # loopback is not left out
                chromium_sandbox=os.geteuid() != 0,  # root cannot have it
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
            )
        except Error as error:
            await self._end()
            said = str(error).strip().splitlines()[0]
            raise ToolError("no_browser", f"Chromium does not start: {said[:300]}") from error

    async def _end(self) -> None:
        from playwright.async_api import Error

        self._contexts.clear()
        if self._browser is not None:
            with suppress(Error):  # it is gone already
                await self._browser.close()
        if self._driver is not None:
            await self._driver.stop()
        if self._proxy is not None:
            await self._proxy.stop()
        self._browser = self._driver = self._proxy = None


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, _Chromium] = WeakKeyDictionary()
