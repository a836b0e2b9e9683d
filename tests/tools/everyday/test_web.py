"""The web as text: what is public, bounded and text, or an error that says why not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.tools.calls import call, error
from tests.tools.everyday.site import serving
from tools.everyday import addresses, guarded_http, search_providers, web
from tools.everyday.addresses import ALLOW, NoAddress, PrivateAddress, checked_addresses, may_connect

WEB = {"toolsets": ("web",)}
VARIABLES = ("SEARXNG_URL", "TAVILY_API_KEY", "BRAVE_API_KEY")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A site that may be read."""
    with serving() as (address, _):
        monkeypatch.setenv(ALLOW, urlsplit(address).netloc)
        yield address


def test_a_page_is_read_as_text(site: str) -> None:
    page = call("web_extract", {"url": f"{site}/to?url=/article"}, **WEB)
    assert (page["url"], page["status"], page["title"]) == (f"{site}/article", 200, "Tides")
    assert "gravitational forces of the Moon" in page["text"]
    assert "Menu entry" not in page["text"]
    assert "never shown" not in page["text"]
    part = call("web_extract", {"url": f"{site}/article", "start": 10, "characters": 20}, **WEB)
    assert part["text"] == page["text"][10:30]
    assert "start=30" in part["more"]
    assert call("web_extract", {"url": f"{site}/missing"}, **WEB)["status"] == 404
    assert call("web_extract", {"url": f"{site}/packed"}, **WEB)["text"] == page["text"]


@pytest.mark.parametrize(
    ("charset", "written_as"),
    [("windows-1251", "cp1251"), ("Shift_JIS", "shift_jis"), ("UTF8", "utf-8"), ("x-unknown", "utf-8")],
)
def test_text_is_read_in_its_charset(site: str, charset: str, written_as: str) -> None:
    text = {"cp1251": "Прилив", "shift_jis": "潮汐"}.get(written_as, "Flut übermorgen 潮汐")
    url = f"{site}/charset?charset={charset}&as={written_as}&text={quote(text)}"
    assert call("web_extract", {"url": url}, **WEB)["text"] == text


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "undefined", "unicode_escape", "utf-7", "zip", "a\0"]
)
def test_a_codec_that_is_no_charset_of_the_web_is_not_used(charset: str) -> None:
    page = guarded_http.Page("http://x/", 200, "text/plain", b"a" * 5_000_000 + b"-b", charset)
    began = time.monotonic()
    assert web._text_of(page) == ("", "a" * 5_000_000 + "-b")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("/image", "not_text"),
        ("/large", "too_large"),
        ("/bomb", "too_large"),
        ("/nested", "unreachable"),
        ("/nested?again=1", "unreachable"),
        ("/to?url=" + quote("/to?url=" * 3), "unreachable"),
        ("/to?url=file:///etc/passwd", "unreachable"),
        ("/to?url=http://nosuch.invalid/", "unreachable"),
    ],
)
def test_what_is_no_bounded_text_is_refused(site: str, path: str, type: str) -> None:
    assert error("web_extract", {"url": site + path}, **WEB)[0] == type


def test_a_page_that_does_not_come_is_given_up(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_http, "SECONDS", 1.0)
    assert error("web_extract", {"url": f"{site}/slow?seconds=20"}, **WEB)[0] == "timeout"


@pytest.mark.parametrize(
    "url", ["", "example.org", "file:///etc/passwd", "ftp://x/y", "http://", "http://[::1"]
)
def test_what_is_no_web_address_is_said(url: str) -> None:
    assert error("web_extract", {"url": url}, **WEB)[0] == "invalid_url"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "224.0.0.1",
    ],
)
def test_private_addresses_are_refused_however_they_are_written(host: str) -> None:
    assert error("web_extract", {"url": f"http://{host}:9/"}, **WEB)[0] == "private_address"


@pytest.mark.parametrize(
    "address",
    [
        *("0.1.2.3", "100.127.255.255", "172.31.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.19.0.1"),
        *("198.51.100.1", "203.0.113.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::10.0.0.1"),
        *("64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:2::1", "2001:db8::1", "2002:7f00:1::", "3fff::1"),
        *("5f00::1", "4000::1", "fc00::1", "fe80::1%1", "fec0::1", "ff02::1"),
    ],
)
def test_no_special_address_is_public(address: str) -> None:
    assert not may_connect(address, 80, [])


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "172.32.0.1",
        "192.0.1.1",
        "198.20.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2606:4700::1",
    ],
)
def test_other_addresses_are_public(address: str) -> None:
    assert may_connect(address, 80, [])


def test_a_redirect_to_a_private_address_is_refused(site: str) -> None:
    with serving() as (other, asked):
        assert (
            error("web_extract", {"url": f"{site}/to?url={quote(other)}/article"}, **WEB)[0]
            == "private_address"
        )
        assert asked == []


def test_a_name_server_that_changes_its_mind_gains_nothing(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is allowed, the second one is not: only the first is asked for, and connected to."""
    real, answers = asyncio.BaseEventLoop.getaddrinfo, []
    port = urlsplit(site).port

    async def changing(loop: Any, host: Any, *arguments: Any, **options: Any) -> Any:
        if host != "rebinding.test":
            return await real(loop, host, *arguments, **options)
        answers.append("127.0.0.1" if not answers else "127.0.0.2")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[-1], port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", changing)
    monkeypatch.setenv(ALLOW, f"127.0.0.1:{port}")
    page = call("web_extract", {"url": f"http://rebinding.test:{port}/article"}, **WEB)
    assert page["title"] == "Tides"
    assert answers == ["127.0.0.1"]
    assert (
        error("web_extract", {"url": f"http://rebinding.test:{port}/article"}, **WEB)[0] == "private_address"
    )


def test_only_what_was_allowed_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(host: str, port: int) -> list[str]:
        return asyncio.run(checked_addresses(host, port))

    monkeypatch.setenv(ALLOW, "10.1.0.0/16, 127.0.0.1:8080, [::1]:8080")
    assert check("10.1.2.3", 80) == ["10.1.2.3"]
    assert check("127.0.0.1", 8080) == ["127.0.0.1"]
    assert check("::1", 8080) == ["::1"]
    assert check("93.184.216.34", 443) == ["93.184.216.34"]
    for host, port in (("10.2.0.1", 80), ("127.0.0.1", 80), ("127.0.0.2", 8080), ("::1", 80)):
        with pytest.raises(PrivateAddress):
            check(host, port)
    with pytest.raises(NoAddress):
        check("nosuch.invalid", 80)
    monkeypatch.setenv(ALLOW, "everything")
    assert error("web_extract", {"url": "http://127.0.0.1/"}, **WEB)[0] == "bad_usage"
    assert addresses.ALLOW in error("web_extract", {"url": "http://127.0.0.1/"}, **WEB)[1]


def test_a_search_asks_whom_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    kind, said = error("web_search", {"query": "tides"}, **WEB)
    assert kind == "no_search_provider"
    assert all(variable in said for variable in VARIABLES)
    with serving() as (address, _):
        monkeypatch.setattr(search_providers, "BRAVE", address)
        monkeypatch.setattr(search_providers, "TAVILY", address)
        for variable, key, name in (
            ("BRAVE_API_KEY", "brave-key", "Brave"),
            ("TAVILY_API_KEY", "tavily-key", "Tavily"),
            ("SEARXNG_URL", address, "SearXNG"),
        ):
            monkeypatch.setenv(variable, "wrong")
            kind, said = error("web_search", {"query": "tides"}, **WEB)
            assert (kind, name in said, "wrong" in said) == ("network", True, False)
            monkeypatch.setenv(variable, key)
            found = call("web_search", {"query": "tides", "count": 3}, **WEB)
            assert found["provider"] == name
            assert found["results"][0]["snippet"] == "tides"
        assert len(found["results"]) == 3
    assert error("web_search", {"query": "tides"}, **WEB)[0] == "network"
    assert error("web_search", {"query": " "}, **WEB)[0] == "invalid_arguments"
