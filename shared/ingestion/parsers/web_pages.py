"""Parsers of websites: pages without boilerplate, sitemaps, robots.txt. Each result is one part with JSON."""

import codecs
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import islice
from typing import Any
from urllib.parse import urljoin

from lxml import etree

from shared import PRODUCT
from shared.errors import UnreadableDocument
from shared.ingestion.parsers.html_xml import decoded, html, tree
from shared.ingestion.parsers.main_content import main_content
from shared.ingestion.parsers.page_faults import fault_of
from shared.ingestion.parsers.parsed_file import ParsedFile, encoding_by_mark, size_error

# The limits of the sitemap protocol.
MAX_ENTRIES, MAX_SITEMAP_BYTES = 50_000, 50 * 1024 * 1024
MAX_VERSION = 100
# The names of entries by that of the root: sitemaps, Atom, RSS 2, RSS 1. The names of an entry's last change;
# RSS has the day of publication alone.
ENTRIES = {"urlset": "url", "sitemapindex": "sitemap", "feed": "entry", "rss": "item", "RDF": "item"}
VERSIONS = ("lastmod", "updated")
NO_SITEMAP = "The address has no sitemap. Give the address of one."
ADDRESS = re.compile(r"https?://\S+$")
GZIP = b"\x1f\x8b"


def page(data: bytes) -> ParsedFile:
    """`text`: the main content as Markdown; `title`; `canonical`: the address that the page calls its own, as
    it states it; `robots`: its rules for robots, as in headers X-Robots-Tag; `fault`: the reason for which it
    has no content of its own, or null (page_faults.py)."""
    data = codecs.BOM_UTF8 + decoded(data).replace("\0", "").encode(errors="replace")
    whole = html(data)
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.HTML(data, parser)
    if root is None:
        return _json(text="", title=None, canonical=None, robots=[], fault="no_text")
    content = main_content(deepcopy(root))
    text = html(
        codecs.BOM_UTF8 + etree.tostring(content, encoding="utf-8", method="html", with_tail=False)
    ).parts[0][1]
    if not text.strip():
        text = whole.parts[0][1]
    links = root.xpath("//link[@rel='canonical']/@href")
    return _json(
        text=text,
        title=whole.title,
        canonical=str(links[0]).strip() if links else None,
        robots=list(_rules(root)),
        fault=fault_of(root, content) or (None if text.strip() else "no_text"),
    )


def _rules(root: Any) -> Iterator[str]:
    for meta in root.iter("meta"):
        name, rules = (meta.get("name") or "").strip().lower(), meta.get("content") or ""
        if name in ("robots", PRODUCT.lower()):
            yield rules if name == "robots" else f"{name}: {rules}"


def sitemap(data: bytes) -> ParsedFile:
    """`entries`: pairs of an address and the time of its last change, if any; `is_index`: whether they are
    sitemaps; `is_feed`: whether only the newest pages are listed. By the protocol a feed (RSS, Atom) and a
    text with an address in each line are sitemaps too."""
    if data.startswith(GZIP):
        unzip = zlib.decompressobj(wbits=31)
        try:
            data = unzip.decompress(data, MAX_SITEMAP_BYTES + 1)
        except zlib.error:
            raise UnreadableDocument("The sitemap is broken.") from None
        if len(data) > MAX_SITEMAP_BYTES:
            raise size_error()
    start = data[:1000].decode(encoding_by_mark(data) or "utf-8", errors="ignore")
    if not start.lstrip("\ufeff \t\r\n").startswith("<"):
        text = decoded(data).lstrip("\ufeff")
        lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
        if not lines or not all(map(ADDRESS.match, lines)):
            raise UnreadableDocument(NO_SITEMAP, code="no_sitemap")
        return _json(entries=[(line, None) for line in _bounded(lines)], is_index=False, is_feed=False)
    root = tree(data)
    name = etree.QName(root).localname
    if name not in ENTRIES:
        raise UnreadableDocument(NO_SITEMAP, code="no_sitemap")
    entries = [
        (address, (_text(entry, *VERSIONS) or "")[:MAX_VERSION] or None)
        for entry in _bounded(root.iter(f"{{*}}{ENTRIES[name]}"))
        if (address := _text(entry, "loc") or _link(entry))
    ]
    is_feed = name not in ("urlset", "sitemapindex")
    return _json(entries=entries, is_index=name == "sitemapindex", is_feed=is_feed)


def _bounded(entries: Iterable[Any]) -> list[Any]:
    bounded = list(islice(entries, MAX_ENTRIES + 1))
    if len(bounded) > MAX_ENTRIES:
        raise size_error()
    return bounded


def _link(entry: Any) -> str | None:
    """The address of an item of a feed: the text of its link, or of a link in Atom its attribute; or an id
    that is an address."""
    for link in entry.iterchildren("{*}link"):
        text = str(link.get("href") or link.text or "").strip()
        if text and link.get("rel", "alternate") == "alternate":
            with suppress(ValueError):
                return urljoin(link.base or "", text)
    guid = _text(entry, "guid") or ""
    return guid if ADDRESS.match(guid) else None


def robots(data: bytes) -> ParsedFile:
    """Of the JSON {"robots": text, "urls": [...]}: the `allowed` urls, and the `delay` in seconds."""
    from protego import Protego

    request = json.loads(data)
    rules = Protego.parse(request["robots"])
    return _json(
        allowed=[url for url in request["urls"] if rules.can_fetch(url, PRODUCT)],
        delay=rules.crawl_delay(PRODUCT) or 0,
    )


def _text(entry: Any, *names: str) -> str | None:
    """The text of the first child of one of the names, without their namespaces."""
    for child in entry.iterchildren(*(f"{{*}}{name}" for name in names)):
        return (child.text or "").strip()
    return None


def _json(**values: Any) -> ParsedFile:
    return ParsedFile([(None, json.dumps(values))])
