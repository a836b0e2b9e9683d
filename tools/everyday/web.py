"""Tools: searching the web, and reading one page of it as text."""

from __future__ import annotations

import asyncio
import codecs
import re
from typing import TYPE_CHECKING, Any

from rl_cli.core.extras import install_command, missing_modules
from tools.dispatcher import ToolError, tool

if TYPE_CHECKING:
    from tools.everyday.guarded_http import Page

MOST_RESULTS = 20
DEFAULT_CHARACTERS = 20_000
CHARSETS = re.compile(
    r"ascii|utf-(8|16(-[lb]e)?)|iso8859-\d+|cp(437|8\d\d|125\d|932|949)|koi8-[ru]|mac-(roman|cyrillic)|tis-620"
    r"|big5(hkscs)?|gb(k|2312|18030)|hz|euc_(jp|kr)|shift_jis|iso2022_jp"
)
"""Those of the web, by Python's names."""
MARKUP = ("text/html", "application/xhtml+xml")


@tool(toolset="web", deadline=60)
async def web_search(query: str, count: int = 5) -> dict[str, Any]:
    """Searches the web and returns titles, addresses and snippets.

    Args:
        query: What to search for.
        count: How many results, at most 20.
    """
    if not query.strip() or not 1 <= count <= MOST_RESULTS:
        raise ToolError("invalid_arguments", f"give a query, and a count from 1 to {MOST_RESULTS}")
    from tools.everyday.search_providers import search_the_web  # httpx is slow to import

    provider, results = await search_the_web(query, count)
    return {"provider": provider, "results": results}


@tool(toolset="web", deadline=90)
async def web_extract(url: str, start: int = 0, characters: int = DEFAULT_CHARACTERS) -> dict[str, Any]:
    """Reads a page of the public web as text, without its menus and markup.

    Args:
        url: Begins with http:// or https://.
        start: The character of the text to begin at.
        characters: How many to return.
    """
    if start < 0 or characters < 1:
        raise ToolError("invalid_arguments", "start is at least 0, characters at least 1")
    from tools.everyday.guarded_http import fetch

    page = await fetch(url)
    title, text = await asyncio.to_thread(_text_of, page)
    shown = text[start : start + characters]
    told: dict[str, Any] = {"url": page.url, "status": page.status, "title": title, "text": shown}
    if start + len(shown) < len(text):
        told["more"] = f"{len(text)} characters in all: go on with start={start + len(shown)}"
    return told


def _text_of(page: Page) -> tuple[str, str]:
    """Title and text. Where a page has no main part that can be told, all of its text."""
    raw = page.data.decode(_codec(page.charset), errors="replace")
    if page.content_type not in MARKUP:
        return "", raw
    import trafilatura

    found: Any = trafilatura.bare_extraction(
        raw, url=page.url, include_tables=True, include_links=True, include_comments=False, with_metadata=True
    )
    title = (found.title if found else None) or ""
    text = (found.text if found else None) or trafilatura.html2txt(raw)
    return title, text


def _codec(charset: str) -> str:
    """Python's name of a charset; UTF-8 for what is none of the web, whose codec may take for ever."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return "utf-8"
    return name if CHARSETS.fullmatch(name) else "utf-8"


def why_not() -> str | None:
    """Why the web tools cannot do all that they should on this machine; None where they can."""
    if missing := missing_modules("web"):
        return f"{', '.join(missing)} is not installed: {install_command('web')}"
    from tools.everyday.search_providers import HINT, provider_set

    return None if provider_set() else f"no web search is set up: {HINT}"
