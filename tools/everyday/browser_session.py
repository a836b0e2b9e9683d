"""A browser for the tasks of one event loop: one headless Chromium, in it one private context per task."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rl_cli.core.extras import install_command
from tools.dispatcher import CallContext, ToolError
from tools.everyday.guarded_proxy import GuardedProxy

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright

INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OF_PLAYWRIGHT = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")
SWITCHES = (
    "--disable-dev-shm-usage",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # it would go past the proxy
    "--disable-background-networking",
)
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "FONTCONFIG_FILE")
"""What Chromium sees of our environment: no keys."""
SESSION = "browser_session"
"""Key of what lives with a context."""


class BrowserSession:
    """One task's browser context, and the page that it looks at."""

    def __init__(self, context: BrowserContext, chromium: _Chromium) -> None:
        self._context = context
        self._chromium = chromium

    @property
    def gone(self) -> bool:
        """Whether Chromium ended under it."""
        browser = self._context.browser
        return browser is None or not browser.is_connected()

    @property
    def page(self) -> Page | None:
        """The page that was opened last, of those that are still open."""
        pages = self._context.pages
        return pages[-1] if pages else None

    async def open_page(self) -> Page:
        return self.page or await self._context.new_page()

    async def close(self) -> None:
        await self._chromium.give_back(self._context)


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
        self._contexts.add(context)
        return context

    async def give_back(self, context: BrowserContext) -> None:
        from playwright.async_api import Error

        async with self.lock:
            self._contexts.discard(context)
            with suppress(Error):  # Chromium is gone, and the context with it
                await context.close()
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
