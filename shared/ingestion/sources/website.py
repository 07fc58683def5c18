"""Website as a source: the pages of its sitemaps that robots.txt allows.

Only URLs of the address's own scheme, host and port count, and of its path. The content is
untrusted: the SSRF guard applies to every connection, sizes are bounded, and a process of its own parses
(shared/ingestion/parsers/web_pages.py).
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote
from uuid import uuid4

import httpx

from shared import PRODUCT
from shared.clients.download import AddressGone, Download, fetch, fetch_if_changed
from shared.clients.http_client import deadline, retry
from shared.clients.http_transport import remaining_seconds
from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, RagError, UnreadableDocument
from shared.ingestion.sources.source import (
    ITEMS_AT_ONCE,
    MAX_BYTES,
    Content,
    Item,
    ItemGone,
    ItemLeftOut,
    ListingRefused,
    too_many_items,
)
from shared.ingestion.web_page import WebPage, forbids_index, is_page, parse_web, read_page

MAX_SITEMAPS = 100
ROBOTS_BYTES = 512 * 1024
# Time limit of a listing, and the longest pause between pages that robots.txt may request.
LISTING_SECONDS, LONGEST_DELAY = 120.0, 10.0
# Time limit of a page, its pauses included.
FETCH_SECONDS = 90.0
# The share of words that two pages for addresses that do not exist have in common.
SAME = 0.9
SITEMAP = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)


class Website:
    def __init__(
        self,
        address: str,
        networks: AddressPolicy,
        max_items: int,
        org_id: str,
        *,
        include_noindex: bool = False,
    ) -> None:
        """Raises AddressRefused."""
        self._address = httpx.URL(networks.require_url(address))
        # The address; the folder of an address that names a file, and the whole host of a sitemap.
        is_file = "." in self._address.path.rpartition("/")[2]
        self._folder = str(
            self._address.join("/" if self._is_sitemap else "." if is_file else self._address.path)
        )
        self._networks = networks
        self._max_items = max_items
        self._org_id = org_id
        self._include_noindex = include_noindex
        # An address that does not exist, and the address and words of the page that the site sends for it.
        self._missing = f"{self._folder.rstrip('/')}/{uuid4().hex}"
        self._answer: tuple[str, Counter[str]] | None = None
        self._delay = 0.0
        self._robots = ""
        self._listed: dict[str, str | None] | None = None
        # A page that has left a feed is still there.
        self.lists_all = True

    def items(self, after: str) -> Iterator[Sequence[Item]]:
        later = [Item(url, self._pages[url]) for url in sorted(self._pages) if url > after]
        for start in range(0, len(later), ITEMS_AT_ONCE):
            yield later[start : start + ITEMS_AT_ONCE]

    def fetch(self, item: Item, known_version: str | None) -> Content | None:
        # The sitemap's version, where it has one, was compared already.
        version = None if item.version else known_version
        try:
            with deadline(FETCH_SECONDS):
                page = retry(lambda: self._fetch(item.id, version), (1.0, 2.0), _pause_of)
        except AddressGone as error:
            raise ItemGone from error
        if page is None:
            return None
        if page.url != item.id and not (self._is_within(page.url) and self._allowed([page.url])):
            raise ItemLeftOut("redirect")
        if not self._include_noindex and forbids_index(page.robots, PRODUCT):
            raise ItemLeftOut("noindex")
        if not is_page(page):
            return Content(
                page.data, None, page.filename, page.content_type, {"url": item.id}, version=page.version
            )
        read = read_page(page)
        if not self._include_noindex and forbids_index(read.robots, PRODUCT):
            raise ItemLeftOut("noindex")
        if fault := read.fault or self._fault_of(item, page, read):
            raise ItemLeftOut(fault, keeps=True)
        url = self._canonical(page, read.canonical)
        if url != item.id and url in self._pages:
            # The sitemap lists the page under its canonical URL too.
            raise ItemLeftOut("duplicate")
        metadata = {"url": url, "source_type": "webpage"}
        return Content(read.text.encode(), read.title, None, "text/markdown", metadata, version=page.version)

    def _fetch(self, url: str, version: str | None) -> Download | None:
        time.sleep(self._delay)
        return fetch_if_changed(url, self._networks, MAX_BYTES, self._org_id, version)

    def _fault_of(self, item: Item, page: Download, read: WebPage) -> str | None:
        """`not_found` for a page that the site also sends for an address that does not exist."""
        if self._answer is None:
            self._answer = self._answer_to_missing()
        address, missing = self._answer
        if page.url != item.id:
            return "not_found" if page.url == address else None
        if not missing or item.id in (self._folder, str(self._address.join("/"))):
            # Some sites send their start page.
            return None
        words = _words(read.text, item.id)
        return "not_found" if (words & missing).total() >= SAME * (words | missing).total() else None

    def _answer_to_missing(self) -> tuple[str, Counter[str]]:
        try:
            page = self._fetch(self._missing, None) if self._allowed([self._missing]) else None
            if page is None or not is_page(page):
                return "", Counter()
            is_own = page.url == self._missing
            return page.url, _words(read_page(page).text, self._missing) if is_own else Counter()
        except RagError:
            # The site says that the page does not exist, or does not answer.
            return "", Counter()

    @property
    def _pages(self) -> dict[str, str | None]:
        """The URLs of the pages with the times of their last changes."""
        if self._listed is None:
            with deadline(LISTING_SECONDS):
                self._listed = self._list()
        return self._listed

    def _list(self) -> dict[str, str | None]:
        self._robots = self._read_robots()
        pages = self._read_sitemaps(SITEMAP.findall(self._robots))
        allowed = {url: pages[url] for url in self._allowed(pages)}
        if not allowed:
            raise ListingRefused(
                "The website's sitemaps list no page below the address that robots.txt allows. "
                "Check the address, or give that of a sitemap.",
                code="no_pages",
            )
        return allowed

    def _allowed(self, urls: Iterable[str]) -> list[str]:
        """The URLs that robots.txt allows. Sets the pause between pages."""
        checked = parse_web("robots", json.dumps({"robots": self._robots, "urls": list(urls)}).encode())
        self._delay = min(LONGEST_DELAY, checked["delay"])
        allowed: list[str] = checked["allowed"]
        return allowed

    def _read_robots(self) -> str:
        """robots.txt; empty if the site has none (RFC 9309). Raises a RagError if it may have one."""
        try:
            return self._download(self._address.join("/robots.txt"), ROBOTS_BYTES).data.decode(
                errors="replace"
            )
        except UnreadableDocument as error:
            # A status below 500. Other codes: it is there, and too large, too slow or broken.
            if error.code != AddressGone.code:
                raise
            return ""

    def _read_sitemaps(self, declared: list[str]) -> dict[str, str | None]:
        if self._is_sitemap:
            waiting = [(self._address, False)]
        else:
            sitemaps = [url for text in declared if (url := self._own(text))]
            waiting = [(url, False) for url in sitemaps or [self._address.join("/sitemap.xml")]]
        pages: dict[str, str | None] = {}
        read: set[httpx.URL] = set()
        while waiting:
            sitemap, is_nested = waiting.pop()
            if sitemap in read:
                continue
            read.add(sitemap)
            if len(read) + len(waiting) > MAX_SITEMAPS or remaining_seconds() <= 0:
                raise ListingRefused(
                    f"The website has more than {MAX_SITEMAPS} sitemaps, or they take too long. "
                    "Give the address of one sitemap.",
                    code="too_many_sitemaps",
                )
            download = self._download(sitemap, MAX_BYTES)
            address = httpx.URL(download.url)
            parsed = parse_web("sitemap", download.data)
            if parsed["is_index"] and is_nested:
                raise ListingRefused(
                    "A sitemap index of the website lists another index. Give the address of one sitemap.",
                    code="sitemap_nested",
                )
            self.lists_all &= not parsed["is_feed"]
            for text, version in parsed["entries"]:
                url = self._own(text, address if parsed["is_feed"] else None)
                if url and parsed["is_index"]:
                    waiting.append((url, True))
                # A feed may list itself.
                elif url and url not in (sitemap, address) and self._is_within(str(url)):
                    pages[str(url)] = version or pages.get(str(url))
            if len(pages) > self._max_items:
                raise too_many_items(self._max_items)
        return pages

    @property
    def _is_sitemap(self) -> bool:
        """Whether the address is that of a sitemap."""
        return self._address.path.endswith((".xml", ".xml.gz", ".rss", ".atom"))

    def _is_within(self, url: str) -> bool:
        """Whether the URL is the address or below it, also after a server has decoded its path."""
        return not _leaves_folder(url) and (
            url == self._folder or url.startswith(self._folder.rstrip("/") + "/")
        )

    def _own(self, text: str, base: httpx.URL | None = None) -> httpx.URL | None:
        """The URL, which may be relative to `base`, if it is one of this host that may be requested."""
        try:
            url = httpx.URL(self._networks.require_url(str(base.join(text)) if base else text))
        except (AddressRefused, httpx.InvalidURL, ValueError):
            return None
        return url if _origin(url) == _origin(self._address) else None

    def _canonical(self, page: Download, link: str | None) -> str:
        url = self._own(link or "", httpx.URL(page.url))
        return str(url) if url else page.url

    def _download(self, url: httpx.URL, max_bytes: int) -> Download:
        return fetch(str(url), self._networks, max_bytes, self._org_id, same_host=True)


def _leaves_folder(url: str) -> bool:
    """Whether the path has a `..` that is encoded, stands between encoded slashes, or has parameters
    (`..;x`)."""
    path = url.partition("?")[0].partition("#")[0]
    # A server and the proxies in front of it may each decode the path once.
    for _ in range(3):
        path = unquote(path)
    return any(part.partition(";")[0] == ".." for part in re.split(r"[/\\]", path))


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _pause_of(error: Exception) -> float | None:
    """The pause before another attempt; None if the worker should not wait for it."""
    wait = error.headers.get("Retry-After") if isinstance(error, FetchFailed) else None
    return float(wait) if wait and float(wait) <= LONGEST_DELAY else None


def _words(text: str, url: str) -> Counter[str]:
    """The words of a text, without those of its address."""
    words = Counter(re.findall(r"\w+", text.lower()))
    for word in re.findall(r"\w+", unquote(url).lower()):
        del words[word]
    return words
