"""A small web site on loopback, and what is needed to be allowed to read it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ARTICLE = """<!doctype html><html><head><title>Tides</title></head><body><nav><a href="/">Menu entry</a></nav>
<article><h1>Tides</h1><p>The tides are the rise and fall of sea levels, caused by the combined effects of the
gravitational forces of the Moon and the Sun, and by the rotation of the Earth.</p><p>They vary on scales from
hours to years, which is why they were tabulated long before they were understood by anybody.</p></article>
<script>var secret = "never shown";</script></body></html>"""
FORM = """<!doctype html><title>Shop</title><h1>Shop</h1><p style="display:none">hidden words</p>
<form action="/found" method="get"><label for="q">Search for</label><input id="q" name="q">
<input type="password" name="pw" aria-label="Secret" value="abc">
<label><input type="checkbox" name="exact"> exact</label>
<select name="kind" aria-label="Kind"><option>Any</option><option>Fruit</option></select>
<button>Go</button></form><ul><li>Apples</li><li><a href="/article">Read on</a></li></ul>
<button onclick="document.getElementById('said').textContent = 'You pressed it'">Press</button>
<p id="said"></p>"""


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass

    def answer(
        self, body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **more: str
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        site: Any = self.server
        site.asked.append(self.path)
        if parts.path == "/article":
            self.answer(ARTICLE)
        elif parts.path == "/form":
            self.answer(FORM)
        elif parts.path == "/found":
            self.answer(f"<title>Found</title><p>Found {json.dumps(asked)}</p>")
        elif parts.path == "/html":
            self.answer(asked["html"])
        elif parts.path == "/file":
            self.answer(b"x", "application/octet-stream", Content_Disposition="attachment; filename=x")
        elif parts.path == "/image":
            self.answer(b"\x89PNG", "image/png")
        elif parts.path == "/missing":
            self.answer("<p>There is no such page here, really not.</p>", status=404)
        elif parts.path == "/bomb":
            self.answer(gzip.compress(b"a" * 50_000_000), "text/plain", Content_Encoding="gzip")
        elif parts.path == "/nested":
            nested = gzip.compress(gzip.compress(b"a"))
            more = {"Location": "/nested"} if "again" in asked else {}
            self.answer(nested, "text/plain", 302 if more else 200, Content_Encoding="gzip, gzip", **more)
        elif parts.path == "/packed":
            self.answer(gzip.compress(ARTICLE.encode()), Content_Encoding="gzip")
        elif parts.path == "/charset":
            self.answer(asked["text"].encode(asked["as"]), f"text/plain; charset={asked['charset']}")
        elif parts.path == "/large":
            self.answer("a" * 6_000_000, "text/plain")
        elif parts.path == "/slow":
            time.sleep(float(asked["seconds"]))
            self.answer("late", "text/plain")
        elif parts.path == "/to":
            self.answer("", status=302, Location=asked["url"])
        elif parts.path == "/fetches":
            fetched = f"fetch({json.dumps(asked['url'])}, {{mode: 'no-cors'}})"
            said = "() => x.textContent = 'fetched'"
            self.answer(f"<p id=x>waiting</p><script>{fetched}.then({said}, {said})</script>")
        elif parts.path == "/search":
            found = [
                {"title": f"Hit {n}", "url": f"https://example.org/{n}", "content": asked["q"]}
                for n in range(9)
            ]
            self.answer(json.dumps({"results": found}), "application/json")
        elif parts.path == "/res/v1/web/search":
            found = [{"title": "Hit", "url": "https://example.org/", "description": asked["q"]}]
            right = self.headers["X-Subscription-Token"] == "brave-key"
            self.answer(json.dumps({"web": {"results": found}}), "application/json", 200 if right else 401)
        else:
            self.answer("{}", "application/json")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        right = self.headers["Authorization"] == "Bearer tavily-key"
        found = [{"title": "Hit", "url": "https://example.org/", "content": asked["query"]}]
        self.answer(json.dumps({"results": found}), "application/json", 200 if right else 401)


@contextmanager
def serving() -> Iterator[tuple[str, list[str]]]:
    """The site's address, and the paths that it is asked for."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
