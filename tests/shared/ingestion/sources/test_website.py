"""The listing and the pages of websites, served by a real HTTP server: bounds, robots.txt, hosts."""

import gzip
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, FetchFailed, RagError
from shared.ingestion.file_to_markdown import convert
from shared.ingestion.sources.source import Item, ItemGone, ItemLeftOut
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


@pytest.fixture
def site() -> Iterator[website_server.Website]:
    with website_server.Website() as server:
        yield server


def opened(site: website_server.Website, path: str = "/", max_items: int = 1000) -> Website:
    return Website(f"{site.url}{path}", OWN, max_items, "an org")


def listed(website: Website, after: str = "") -> list[Item]:
    return [item for batch in website.items(after) for item in batch]


def index_of(*addresses: str) -> str:
    entries = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f"<sitemapindex>{entries}</sitemapindex>"


def test_the_pages_of_all_sitemaps_that_robots_txt_allows_are_listed(site: website_server.Website):
    robots = f"User-agent: *\nDisallow: /docs/secret*\nAllow: /docs/secrets$\nSitemap: {site.url}/index.xml\n"
    site.put("/robots.txt", robots)
    site.put(
        "/index.xml", index_of(f"{site.url}/one.xml", f"{site.url}/two.xml.gz", "https://a.example/x.xml")
    )
    site.list_pages(
        "/docs/b", "/docs/a", "/docs/secret/plan", "/docs/secrets", "/other", path="/one.xml", a="2026-01-02"
    )
    packed = f"<urlset><url><loc>{site.url}/docs/c#part</loc></url><url><loc>https://a.example/docs/</loc></url></urlset>"
    site.put("/two.xml.gz", gzip.compress(packed.encode()), Content_Type="application/gzip")
    names = ("/docs/a", "/docs/b", "/docs/c", "/docs/secrets")
    items = listed(opened(site, "/docs/"))
    assert [item.id for item in items] == [site.url + name for name in names]
    assert [item.version for item in items] == ["2026-01-02", None, None, None]
    assert [item.id for item in listed(opened(site, "/docs/"), f"{site.url}/docs/b")] == [
        f"{site.url}/docs/c", f"{site.url}/docs/secrets",
    ]  # fmt: skip
    # The address of a sitemap: the pages that it lists, wherever they are on the host.
    assert len(listed(opened(site, "/one.xml"))) == 4


def test_a_text_with_other_lines_than_addresses_is_no_sitemap(site: website_server.Website):
    site.put("/sitemap.xml", f"The site has moved.\n{site.url}/new\n")
    with pytest.raises(RagError) as refused:
        listed(opened(site))
    assert refused.value.code == "no_sitemap"


@pytest.mark.parametrize(
    ("path", "sitemap", "version"),
    [
        ("/feed", "<rss version='2.0'><channel><link>/</link><item><title>a</title><link>{page}</link>"
         "<pubDate>Mon, 30 Nov 2026</pubDate></item></channel></rss>", None),
        ("/feed.rss", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><item xmlns="
         "'http://purl.org/rss/1.0/'><link>{page}</link></item></rdf:RDF>", None),
        ("/feed.atom", "<feed xmlns='http://www.w3.org/2005/Atom'><link href='/'/><entry><link href='/x.mp3' "
         "rel='enclosure'/><link href='{page}'/><updated>2026-11</updated></entry></feed>", "2026-11"),
        ("/b/relative.atom", "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='../a'/></entry>"
         "<entry><link href='#top'/></entry><entry><link href='//other.example/a'/></entry></feed>", None),
        ("/base.atom", "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/b/'><entry><link href='../a'/>"
         "</entry></feed>", None),
        ("/ids.rss", "<rss version='2.0'><channel><item><guid isPermaLink='false'>post-7</guid></item>"
         "<item><guid>{page}</guid></item></channel></rss>", None),
        ("/16.xml", "<?xml version='1.0' encoding='utf-16'?>"
         "<urlset><url><loc>{page}</loc></url></urlset>", None),
        ("/sitemap.txt", "\ufeff{page}\r\n# a comment\r\n", None),
    ],
)  # fmt: skip
def test_a_feed_and_a_text_of_addresses_are_sitemaps(
    site: website_server.Website, path: str, sitemap: str, version: str | None
):
    site.put("/robots.txt", f"Sitemap: {site.url}{path}\nSitemap: {site.url}/sitemap.xml")
    site.list_pages("/b")
    text = sitemap.format(page=f"{site.url}/a")
    site.put(path, text.encode("utf-16" if "utf-16" in text else "utf-8"))
    website = opened(site)
    items = listed(website)
    # What has left a feed is still there.
    assert website.lists_all is (path in ("/16.xml", "/sitemap.txt"))
    assert [(item.id, item.version) for item in items] == [
        (f"{site.url}/a", version),
        (f"{site.url}/b", None),
    ]
    if path.endswith((".rss", ".atom")):
        assert [item.id for item in listed(opened(site, path))] == [f"{site.url}/a"]


def test_a_page_is_its_main_text(site: website_server.Website):
    site.list_pages("/kiln", "/old", "/manual.pdf")
    site.put("/kiln", article("Kiln", "The kiln is hot.", "<link rel='canonical' href='/the-kiln'>"))
    site.put("/old", article("Old", "The kiln is old.", f"<link rel='canonical' href='{site.url}/kiln'>"))
    site.put("/manual.pdf", b"%PDF-1.7", Content_Type="application/octet-stream")
    website = opened(site)
    kiln, manual, old = listed(website)
    page = website.fetch(kiln, None)
    assert page is not None
    text = page.data.decode()
    assert "The kiln is hot." in text
    assert "menu" not in text
    assert "footer" not in text
    assert (page.title, page.metadata["url"]) == ("Kiln", f"{site.url}/the-kiln")
    assert website.fetch(kiln, page.version) is None
    file = website.fetch(manual, None)
    assert file is not None
    assert (file.data, file.filename) == (b"%PDF-1.7", "manual.pdf")
    # The canonical page is listed too.
    with pytest.raises(ItemLeftOut):
        website.fetch(old, None)
    with pytest.raises(ItemGone):
        website.fetch(Item(f"{site.url}/none"), None)


@pytest.mark.parametrize(
    ("address", "pages"),
    [
        ("/docs", {"/docs", "/docs/", "/docs/a"}),
        ("/docs/", {"/docs/", "/docs/a"}),
        ("/docs/a", {"/docs/a"}),
        ("/docs/index.html", {"/docs/", "/docs/a"}),
        ("/", {"/docs", "/docs/", "/docs/a", "/docs-old"}),
        ("", {"/docs", "/docs/", "/docs/a", "/docs-old"}),
    ],
)
def test_an_address_is_itself_and_what_is_below(site: website_server.Website, address: str, pages: set[str]):
    site.list_pages("/docs", "/docs/", "/docs/a", "/docs-old")
    assert {item.id.removeprefix(site.url) for item in listed(opened(site, address))} == pages


def test_a_redirect_out_of_the_address_or_of_robots_txt_is_left_out(site: website_server.Website):
    site.put("/robots.txt", "User-agent: *\nDisallow: /docs/secret\n")
    site.list_pages("/docs/a", "/docs/b", "/docs/c")
    site.put("/docs/a", "", 302, Location="/docs/secret")
    site.put("/docs/b", "", 302, Location="/other")
    site.put("/docs/c", "", 302, Location="/docs/moved")
    for path in ("/docs/secret", "/other", "/docs/moved"):
        site.put(path, article("Kiln", "The kiln is hot."))
    website = opened(site, "/docs/")
    first, second, third = listed(website)
    for item in (first, second):
        with pytest.raises(ItemLeftOut):
            website.fetch(item, None)
    assert website.fetch(third, None) is not None


def test_no_encoded_dots_lead_out_of_the_folder(site: website_server.Website):
    out = [
        "%2e%2e/plan", "%2E%2E/plan", ".%2e/plan", "%2e./plan", "a/%2e%2e/%2e%2e/plan", "%2e%2e%2fplan",
        "..%2Fplan", "..%5cplan", "%2e%2e%5Cplan", "%252e%252e/plan", "%25252e%25252e%25252fplan",
        "..;x/plan", "%2e%2e", "a%2f%2e%2e",
    ]  # fmt: skip
    within = ["a", "a%2fb", "v1..2", "%2e%2ea", "b?to=..%2f%2e%2e/"]
    site.list_pages(*(f"/docs/{path}" for path in (*out, *within)))
    for address in ("/docs/", "/"):
        items = listed(opened(site, address))
        assert {item.id.removeprefix(f"{site.url}/docs/") for item in items} == set(within)
    # A redirect does not lead out either.
    site.put("/docs/a", "", 302, Location="/docs/%2e%2e/plan")
    site.put("/docs/%2e%2e/plan", article("Plan", "The plan is secret."))
    website = opened(site, "/docs/")
    (item,) = (item for item in listed(website) if item.id.endswith("/docs/a"))
    with pytest.raises(ItemLeftOut):
        website.fetch(item, None)


def nested(site: website_server.Website) -> None:
    site.put("/sitemap.xml", index_of(f"{site.url}/second.xml"))
    site.put("/second.xml", index_of(f"{site.url}/third.xml"))


def many_sitemaps(site: website_server.Website) -> None:
    site.put("/sitemap.xml", index_of(*(f"{site.url}/{number}.xml" for number in range(101))))
    site.list_pages(path="/100.xml")


REFUSED: dict[str, tuple[Callable[[website_server.Website], object], str]] = {
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
def test_a_listing_that_is_not_complete_fails(site: website_server.Website, why: str):
    prepare, code = REFUSED[why]
    prepare(site)
    with pytest.raises(RagError) as raised:
        listed(opened(site, max_items=10))
    assert raised.value.code == code


def test_no_connection_leads_to_a_private_network(site: website_server.Website):
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
    ("text/html; charset=GBK", "gbk", "窑的温度是三百度。"): "",
    ("text/html;charset=\"koi8-r\"", "koi8-r", "Печь нагревается до трёхсот градусов."): "",
    ("text/html; charset=gb2312", "gb18030", "朱镕基总理。"): "",
    # The page's own charset, where the header has none or a wrong one.
    ("text/html", "windows-1251", "Печь нагревается."): "<meta charset=windows-1251>",
    ("text/html; charset=utf-8", "euc-jp", "窯の温度は三百度です。"): "<meta charset=euc-jp>",
    ("text/html; charset=iso-8859-1", "utf-8", "Die Öfen – größer"): "<meta charset=utf-8>",
    # Detection.
    ("text/html", "koi8-r", "Печь нагревается до трёхсот градусов. " * 9): "",
    ("text/html", "cp1252", "Die Öfen heizen größer, müßig, über “alles” Maß hinaus. " * 9): "",
    ("text/plain; charset=koi8-r", "koi8-r", "Печь нагревается."): "",
}  # fmt: skip


@pytest.mark.parametrize("case", CHARSETS, ids=lambda case: "-".join(case[:2]))
def test_letters_are_those_of_the_header_then_of_the_page(
    site: website_server.Website, case: tuple[str, str, str]
):
    content_type, encoding, text = case
    body = (
        f"{CHARSETS[case]}<title>{text[:20]}</title><h1>1</h1><p>{text}</p>"
        if "html" in content_type
        else text
    )
    site.put("/a", body.encode(encoding), Content_Type=content_type)
    content = opened(site).fetch(Item(f"{site.url}/a"), None)
    assert content is not None
    converted = convert(content.data, content.filename, content.content_type)
    assert text.strip() in converted.text
    assert content.title in (text[:20].strip(), None)


NO_INDEX: dict[str, tuple[dict[str, str], str]] = {
    "a header": ({"X-Robots-Tag": "noindex"}, ""),
    "one rule of a header": ({"X-Robots-Tag": "noarchive, NONE"}, ""),
    "a header for this robot": ({"X-Robots-Tag": "citerow: noindex, nofollow"}, ""),
    "an element": ({}, "<meta name=robots content=noindex>"),
}


def test_rules_for_another_robot_are_not_ours():
    assert not forbids_index(["otherbot: nofollow, noindex", "otherbot: noindex"], "citerow")
    assert forbids_index(["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], "citerow")


@pytest.mark.parametrize("how", NO_INDEX)
def test_what_asks_not_to_be_indexed_is_left_out_unless_the_source_includes_it(
    site: website_server.Website, how: str
):
    headers, head = NO_INDEX[how]
    site.pages["/a"] = Page(article("Kiln", "The kiln is hot.", head), headers=headers)
    with pytest.raises(ItemLeftOut) as left_out:
        opened(site).fetch(Item(f"{site.url}/a"), None)
    assert (left_out.value.reason, left_out.value.keeps) == ("noindex", False)
    included = Website(site.url, OWN, 10, "an org", include_noindex=True)
    assert included.fetch(Item(f"{site.url}/a"), None) is not None


def test_a_header_for_other_robots_forbids_nothing(site: website_server.Website):
    site.put("/a", article("Kiln", "The kiln is hot."), X_Robots_Tag="otherbot: noindex")
    site.put("/b.txt", "The kiln is cold.", Content_Type="text/plain", X_Robots_Tag="noindex")
    assert opened(site).fetch(Item(f"{site.url}/a"), None) is not None
    with pytest.raises(ItemLeftOut):
        opened(site).fetch(Item(f"{site.url}/b.txt"), None)


def test_a_page_that_the_site_sends_for_any_address_does_not_exist(
    site: website_server.Website, monkeypatch: pytest.MonkeyPatch
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
        with pytest.raises(ItemLeftOut, match="not_found") as left_out:
            website.fetch(Item(site.url + path), None)
        assert left_out.value.keeps
    for path in ("/c", "/d", "/"):
        assert website.fetch(Item(site.url + path), None) is not None
    assert site.requests.count(missing) == 1
    # A site that redirects to one page instead.
    site.put(missing, "", 302, Location="/e")
    with pytest.raises(ItemLeftOut, match="not_found"):
        opened(site).fetch(Item(f"{site.url}/d"), None)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_site_gets_another_request_after_its_pause(site: website_server.Website, status: int):
    site.put("/a", "", status, Retry_After="1")
    site.on_request = lambda path: (
        site.put(path, article("Kiln", "Hot.")) if site.requests.count(path) == 2 else None
    )
    content = opened(site).fetch(Item(f"{site.url}/a"), None)
    assert content is not None
    # The worker does not wait for a longer one.
    site.put("/b", "", status, Retry_After="3600")
    with pytest.raises(FetchFailed) as raised:
        opened(site).fetch(Item(f"{site.url}/b"), None)
    assert raised.value.headers["Retry-After"] == "3600"
    assert site.requests.count("/b") == 1
