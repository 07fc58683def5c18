"""The listing and the pages of websites, served by a real HTTP server: bounds, robots.txt, hosts."""

import gzip
from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

import pytest

from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, RagError
from shared.ingestion.file_to_markdown import convert
from shared.ingestion.sources.source import Content, Item, ItemGone, ItemLeftOut
from shared.ingestion.sources.website import Website
from shared.ingestion.web_page import forbids_index
from tests import website_server
from tests.website_server import Page, article, small

OWN = AddressPolicy(["127.0.0.1/32"])
BOMB = (
    "<!DOCTYPE urlset [<!ENTITY a 'https://a.example/'>"
    + "".join(f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9))
    + "]><urlset><url><loc>&j;</loc></url></urlset>"
)


Site = website_server.Website


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        yield server


def opened(site: Site, path: str = "/", max_items: int = 1000) -> Website:
    return Website(f"{site.url}{path}", OWN, max_items, "an org")


def listed(website: Website, after: str = "") -> list[Item]:
    return [item for batch in website.items(after) for item in batch]


def index_of(*addresses: str) -> str:
    entries = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f"<sitemapindex>{entries}</sitemapindex>"


def paths(site: Site, website: Website, after: str = "") -> list[str]:
    """The listed pages of the site."""
    return [item.id.removeprefix(site.url) for item in listed(website, after and site.url + after)]


def fetched(website: Website, address: str) -> Content:
    content = website.fetch(Item(address), None)
    assert content is not None
    return content


def assert_left_out(website: Website, address: str, reason: str | None = None, keeps: bool = False) -> None:
    with pytest.raises(ItemLeftOut, match=reason) as left_out:
        website.fetch(Item(address), None)
    assert left_out.value.keeps == keeps


def test_the_pages_of_all_sitemaps_that_robots_txt_allows_are_listed(site: Site):
    robots = f"User-agent: *\nDisallow: /docs/secret*\nAllow: /docs/secrets$\nSitemap: {site.url}/index.xml\n"
    site.put("/robots.txt", robots)
    site.put(
        "/index.xml", index_of(f"{site.url}/one.xml", f"{site.url}/two.xml.gz", "https://a.example/x.xml")
    )
    names = ("/docs/b", "/docs/a", "/docs/secret/plan", "/docs/secrets", "/other")
    site.list_pages(*names, path="/one.xml", a="2026-01-02")
    entries = f"<url><loc>{site.url}/docs/c#part</loc></url><url><loc>https://a.example/docs/</loc></url>"
    packed = gzip.compress(f"<urlset>{entries}</urlset>".encode())
    site.put("/two.xml.gz", packed, Content_Type="application/gzip")
    website = opened(site, "/docs/")
    assert paths(site, website) == ["/docs/a", "/docs/b", "/docs/c", "/docs/secrets"]
    assert [item.version for item in listed(website)] == ["2026-01-02", None, None, None]
    assert paths(site, website, "/docs/b") == ["/docs/c", "/docs/secrets"]
    # The address of a sitemap: the pages that it lists, wherever they are on the host.
    assert len(listed(opened(site, "/one.xml"))) == 4


ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'{}>{}</feed>"
FEEDS = {
    "/feed": "<rss version='2.0'><channel><link>/</link><item><title>a</title><link>{page}</link>"
    "<pubDate>Mon, 30 Nov 2026</pubDate></item></channel></rss>",
    "/feed.rss": "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><item xmlns="
    "'http://purl.org/rss/1.0/'><link>{page}</link></item></rdf:RDF>",
    "/feed.atom": ATOM.format("", "<link href='/'/><entry><link href='/x.mp3' rel='enclosure'/>"
    "<link href='{page}'/><updated>2026-11</updated></entry>"),
    "/b/relative.atom": ATOM.format("", "<entry><link href='../{name}'/></entry><entry><link href='#top'/>"
    "</entry><entry><link href='//other.example/a'/></entry>"),
    "/base.atom": ATOM.format(" xml:base='/b/'", "<entry><link href='../{name}'/></entry>"),
    "/ids.rss": "<rss version='2.0'><channel><item><guid isPermaLink='false'>post-7</guid></item>"
    "<item><guid>{page}</guid></item></channel></rss>",
    "/16.xml": "<?xml version='1.0' encoding='utf-16'?><urlset><url><loc>{page}</loc></url></urlset>",
    "/sitemap.txt": "\ufeff{page}\r\n# a comment\r\n",
}  # fmt: skip


def test_a_feed_and_a_text_of_addresses_are_sitemaps(site: Site):
    def declare(*paths: str) -> None:
        site.put("/robots.txt", "".join(f"Sitemap: {site.url}{path}\n" for path in paths))

    for number, (path, text) in enumerate(FEEDS.items()):
        filled = text.format(page=f"{site.url}/{number}", name=number)
        site.put(path, filled.encode("utf-16" if "utf-16" in text else "utf-8"))
    declare(*FEEDS)
    website = opened(site)
    versions = {item.id.removeprefix(site.url): item.version for item in listed(website)}
    assert versions == {f"/{number}": "2026-11" if number == 2 else None for number in range(len(FEEDS))}
    # What has left a feed is still there.
    assert not website.lists_all
    assert paths(site, opened(site, "/base.atom")) == ["/4"]
    declare("/16.xml", "/sitemap.txt")
    website = opened(site)
    assert paths(site, website) == ["/6", "/7"]
    assert website.lists_all
    # A text with other lines is no sitemap.
    site.put("/sitemap.txt", f"The site has moved.\n{site.url}/new\n")
    with pytest.raises(RagError) as refused:
        listed(opened(site))
    assert refused.value.code == "no_sitemap"


def test_a_page_is_its_main_text(site: Site):
    site.list_pages("/kiln", "/old", "/manual.pdf")
    site.put("/kiln", article("Kiln", "The kiln is hot.", "<link rel='canonical' href='/the-kiln'>"))
    site.put("/old", article("Old", "The kiln is old.", f"<link rel='canonical' href='{site.url}/kiln'>"))
    site.put("/manual.pdf", b"%PDF-1.7", Content_Type="application/octet-stream")
    website = opened(site)
    kiln, manual, old = listed(website)
    page = fetched(website, kiln.id)
    text = page.data.decode()
    assert [word in text for word in ("The kiln is hot.", "menu", "footer")] == [True, False, False]
    assert (page.title, page.metadata["url"]) == ("Kiln", f"{site.url}/the-kiln")
    assert website.fetch(kiln, page.version) is None
    file = fetched(website, manual.id)
    assert (file.data, file.filename) == (b"%PDF-1.7", "manual.pdf")
    # The canonical page is listed too.
    assert_left_out(website, old.id)
    with pytest.raises(ItemGone):
        website.fetch(Item(f"{site.url}/none"), None)


def test_an_address_is_itself_and_what_is_below(site: Site):
    site.list_pages("/docs", "/docs/", "/docs/a", "/docs-old")
    below = ["/docs/", "/docs/a"]
    for address, pages in {
        "/docs": ["/docs", *below], "/docs/": below, "/docs/a": ["/docs/a"], "/docs/index.html": below,
        "/": ["/docs", "/docs-old", *below], "": ["/docs", "/docs-old", *below],
    }.items():  # fmt: skip
        assert (address, paths(site, opened(site, address))) == (address, pages)


def test_a_redirect_out_of_the_address_or_of_robots_txt_is_left_out(site: Site):
    site.put("/robots.txt", "User-agent: *\nDisallow: /docs/secret\n")
    targets = {"/docs/a": "/docs/secret", "/docs/b": "/other", "/docs/c": "/docs/moved"}
    site.list_pages(*targets)
    for path, target in targets.items():
        site.put(path, "", 302, Location=target)
        site.put(target, article("Kiln", "The kiln is hot."))
    website = opened(site, "/docs/")
    first, second, third = listed(website)
    assert_left_out(website, first.id)
    assert_left_out(website, second.id)
    assert fetched(website, third.id)


def test_no_encoded_dots_lead_out_of_the_folder(site: Site):
    out = [
        "%2e%2e/plan", "%2E%2E/plan", ".%2e/plan", "%2e./plan", "a/%2e%2e/%2e%2e/plan", "%2e%2e%2fplan",
        "..%2Fplan", "..%5cplan", "%2e%2e%5Cplan", "%252e%252e/plan", "%25252e%25252e%25252fplan",
        "..;x/plan", "%2e%2e", "a%2f%2e%2e",
    ]  # fmt: skip
    within = ["a", "a%2fb", "v1..2", "%2e%2ea", "b?to=..%2f%2e%2e/"]
    site.list_pages(*(f"/docs/{path}" for path in (*out, *within)))
    for address in ("/docs/", "/"):
        assert {*paths(site, opened(site, address))} == {f"/docs/{path}" for path in within}
    # A redirect does not lead out either.
    site.put("/docs/a", "", 302, Location="/docs/%2e%2e/plan")
    site.put("/docs/%2e%2e/plan", article("Plan", "The plan is secret."))
    website = opened(site, "/docs/")
    assert listed(website)
    assert_left_out(website, f"{site.url}/docs/a")


def nested(site: Site) -> None:
    site.put("/sitemap.xml", index_of(f"{site.url}/second.xml"))
    site.put("/second.xml", index_of(f"{site.url}/third.xml"))


def many_sitemaps(site: Site) -> None:
    site.put("/sitemap.xml", index_of(*(f"{site.url}/{number}.xml" for number in range(101))))
    site.list_pages(path="/100.xml")


REFUSED: dict[str, tuple[Callable[[Site], object], str]] = {
    "more pages than allowed": (
        lambda site: site.list_pages(*(f"/{n}" for n in range(11))), "too_many_items"),
    "an index in an index": (nested, "sitemap_nested"),
    "many sitemaps": (many_sitemaps, "too_many_sitemaps"),
    "entities that expand": (lambda site: site.put("/sitemap.xml", BOMB), "processing_failed"),
    "a packed sitemap that expands": (lambda site: site.put("/sitemap.xml", gzip.compress(b" " * (60 << 20)),
     Content_Type="application/gzip"), "file_too_large"),
    "more entries than the protocol allows": (
        lambda site: site.put("/sitemap.xml", f"<urlset>{'<url/>' * 50_001}</urlset>"), "file_too_large"),
    "a page instead of a sitemap": (lambda site: site.put("/sitemap.xml", "<html/>"), "no_sitemap"),
    "no sitemap": (lambda _: None, "url_refused"),
    "an empty sitemap": (lambda site: site.list_pages(), "no_pages"),
    "a sitemap on another host": (
        lambda site: site.put("/sitemap.xml", "", 302, Location="http://127.0.0.2/sitemap.xml"),
        "url_not_allowed"),
    "a large robots.txt": (lambda site: site.put("/robots.txt", "#" * 600_000), "file_too_large"),
    "a broken robots.txt": (
        lambda site: site.put("/robots.txt", b"no gzip", Content_Encoding="gzip"), "processing_failed"),
    "a robots.txt with an error": (lambda site: site.put("/robots.txt", "", 503), FetchFailed.code),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_a_listing_that_is_not_complete_fails(site: Site, why: str):
    prepare, code = REFUSED[why]
    prepare(site)
    with pytest.raises(RagError) as raised:
        listed(opened(site, max_items=10))
    assert raised.value.code == code


def test_no_connection_leads_to_a_private_network(site: Site):
    site.list_pages("/a")
    for address in (site.url, "http://localhost/", "http://[::1]/", "http://169.254.169.254/"):
        with pytest.raises(AddressRefused):
            listed(Website(address, AddressPolicy(), 10, "an org"))
    # Another port is another host too.
    for target in ("http://127.0.0.2/", "http://127.0.0.1:1/", "http://192.168.0.1/"):
        site.put("/a", "", 302, Location=target)
        with pytest.raises(AddressRefused):
            opened(site).fetch(Item(f"{site.url}/a"), None)


CHARSETS = {
    ("text/html; charset=Shift_JIS", "shift_jis", "窯の温度は三百度です。"): "",
    ("text/html;charset=\"koi8-r\"", "koi8-r", "Печь нагревается до трёхсот градусов."): "",
    # The page's own charset, where the header has none or a wrong one.
    ("text/html", "windows-1251", "Печь нагревается."): "<meta charset=windows-1251>",
    ("text/html; charset=utf-8", "euc-jp", "窯の温度は三百度です。"): "<meta charset=euc-jp>",
    ("text/html; charset=iso-8859-1", "utf-8", "Die Öfen – größer"): "<meta charset=utf-8>",
    # Detection.
    ("text/html", "cp1252", "Die Öfen heizen größer, müßig, über “alles” Maß hinaus. " * 9): "",
    ("text/plain; charset=koi8-r", "koi8-r", "Печь нагревается."): "",
}  # fmt: skip


def test_letters_are_those_of_the_header_then_of_the_page(subtests: pytest.Subtests, site: Site):
    website = opened(site)
    for number, ((content_type, encoding, text), head) in enumerate(CHARSETS.items()):
        is_html = "html" in content_type
        body = f"{head}<title>{text[:20]}</title><h1>1</h1><p>{text}</p>" if is_html else text
        site.put(f"/{number}", body.encode(encoding), Content_Type=content_type)
        with subtests.test(content_type, encoding=encoding):
            content = fetched(website, f"{site.url}/{number}")
            assert text.strip() in convert(content.data, content.filename, content.content_type).text
            assert content.title == (text[:20].strip() if is_html else None)


NO_INDEX: list[tuple[Mapping[str, str], str]] = [
    ({"X-Robots-Tag": "noindex"}, ""),
    ({"X-Robots-Tag": "noarchive, NONE"}, ""),
    # A header for this robot, and an element.
    ({"X-Robots-Tag": "citerow: noindex, nofollow"}, ""),
    ({}, "<meta name=robots content=noindex>"),
]


def test_what_asks_not_to_be_indexed_is_left_out_unless_the_source_includes_it(site: Site):
    website, including = opened(site), Website(site.url, OWN, 10, "an org", include_noindex=True)
    for number, (headers, head) in enumerate(NO_INDEX):
        site.pages[f"/{number}"] = Page(article("Kiln", "The kiln is hot.", head), headers=headers)
        assert_left_out(website, f"{site.url}/{number}", "noindex")
        assert fetched(including, f"{site.url}/{number}")
    site.put("/b.txt", "The kiln is cold.", Content_Type="text/plain", X_Robots_Tag="noindex")
    assert_left_out(website, f"{site.url}/b.txt", "noindex")
    # A header for another robot.
    site.put("/a", article("Kiln", "The kiln is hot."), X_Robots_Tag="otherbot: nofollow, noindex")
    assert fetched(website, f"{site.url}/a")
    assert forbids_index(["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], "citerow")


def test_a_page_that_the_site_sends_for_any_address_does_not_exist(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shared.ingestion.sources.website.uuid4", lambda: UUID(int=5))
    missing = f"/{UUID(int=5).hex}"
    lost = (
        "We have moved some rooms. Ask at the desk, or look at the plan of the house behind the door of {}."
    )
    for path in ("/a", "/b", "/", missing):
        site.put(path, small("Acme", lost.format(path)))
    site.put("/c", article("Kiln", "The kiln is hot."))
    site.put("/d", "", 302, Location="/e")
    site.list_pages("/a", "/b", "/c", "/d")
    site.put("/e", article("Kiln", "The kiln is cold."))
    website = opened(site)
    for path in ("/a", "/b"):
        assert_left_out(website, site.url + path, "not_found", keeps=True)
    for path in ("/c", "/d", "/"):
        assert fetched(website, site.url + path)
    assert site.requests.count(missing) == 1
    # A site that redirects to one page instead.
    site.put(missing, "", 302, Location="/e")
    assert_left_out(opened(site), f"{site.url}/d", "not_found", keeps=True)


def test_a_busy_site_gets_another_request_after_its_pause(site: Site):
    def answer(path: str) -> None:
        if site.requests.count(path) == 2:
            site.put(path, article("Kiln", "Hot."))

    site.on_request = answer
    website = opened(site)
    for status in (429, 503):
        site.put(f"/{status}", "", status, Retry_After="1")
        assert fetched(website, f"{site.url}/{status}")
    # The worker does not wait for a longer pause.
    site.put("/b", "", 503, Retry_After="3600")
    with pytest.raises(FetchFailed) as raised:
        website.fetch(Item(f"{site.url}/b"), None)
    assert raised.value.headers["Retry-After"] == "3600"
    assert site.requests.count("/b") == 1
