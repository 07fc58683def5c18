"""A website on this machine: pages by path, and a log of requests."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML = "text/html; charset=utf-8"
MENU = "<nav><a href='/'>Start of the menu</a></nav>"
# Enough text to be recognized as the main text.
SENTENCES = (
    "<p>This was written for the people who work here, and they read it every day of the week.</p>" * 8
)
FOOTER = "<footer>Copyright of the footer</footer>"


def article(title: str, text: str, head: str = "") -> bytes:
    """A page with a menu and a footer around its text."""
    return (
        f"<html><head><title>{title}</title>{head}</head><body>{MENU}<main><h1>{title}</h1>"
        f"<p>{text}</p>{SENTENCES}</main>"
        f"{FOOTER}</body></html>"
    ).encode()


def small(title: str, text: str, head: str = "") -> bytes:
    """A page with hardly any text."""
    body = f"{MENU}<main><p>{text}</p></main>"
    return f"<html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


@dataclass
class Page:
    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Website:
    """Use as a context manager. Each page has an ETag."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[str] = []
        self.on_request: Callable[[str], object] = lambda _: None
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self) -> None:
                site.requests.append(self.path)
                site.on_request(self.path)
                page = site.pages.get(self.path, Page(b"no such page", 404))
                tag = f'"{hashlib.sha256(page.body).hexdigest()}"'
                is_known = self.headers.get("If-None-Match") == tag
                self.send_response(304 if is_known else page.status)
                for name, value in {"Content-Type": HTML, "ETag": tag, **page.headers}.items():
                    self.send_header(name, value)
                body = b"" if is_known else page.body
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Website":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def put(self, path: str, body: bytes | str, status: int = 200, **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = Page(
            data, status, {name.replace("_", "-"): value for name, value in headers.items()}
        )

    def list_pages(self, *paths: str, path: str = "/sitemap.xml", **versions: str) -> None:
        """Write a sitemap of these paths. `versions`: by the last part of a path, the time of its change."""
        entries = ""
        for name in paths:
            version = versions.get(name.rpartition("/")[2])
            changed = f"<lastmod>{version}</lastmod>" if version else ""
            entries += f"<url><loc>{self.url}{name}</loc>{changed}</url>"
        self.put(path, f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</urlset>")
