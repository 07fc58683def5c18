"""Reasons for which a web page is no document: it has no content of its own."""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from shared.ingestion.parsers.main_content import prose
from shared.text.normalize import one_line

# Characters outside of links: of a page with hardly any text, of one that scripts fill, of a question for
# consent.
HARDLY, SHELL, CONSENT = 600, 200, 3000
MAX_NAME = 200
_PAGE = (
    "page|site|url|content|article|product|post|seite|artikel|p[áa]gina|strona|sidan|siden?|sivua?|str[áa]nka"
    r"|oldal|sayfa|страниц\w*|сторінк\w*|الصفحة|ページ|页面|頁面|网页|網頁|페이지"
)
_MISSING = (
    "(?:not|cannot|can.?t|couldn.?t) (?:be )?found|(?:does not|doesn.?t|no longer) exists?|nicht gefunden"
    "|existiert nicht(?: mehr)?|introuvable|non trouv[ée]e?|n.existe (?:pas|plus)|no (?:fue )?encontrad[ao]"
    "|no existe|n[ãa]o (?:foi )?encontrad[ao]|non (?:[èe] stata )?trovat[ao]|niet gevonden|nie znaleziono"
    "|nie istnieje|(?:kunde )?inte (?:hittas|hittades)|ikke (?:fundet|funnet)|ei l[öo](?:ydy|ytynyt)"
    "|nenalezena|nem tal[áa]lhat[óo]|bulunamad[ıi]|не найден[ао]?|не существует|не знайден[ао]|غير موجودة?"
    "|見つかりません(?:でした)?|が?ありません|找不到|未找到|不存在|찾을 수 없습니다"
)
# What the title or the only heading of such a page says, as a whole.
_NAMES = {
    "not_found": (
        rf"(?:(?:error|http|status|code|fehler|erreur|{_PAGE})\W*){{0,3}}404"
        rf"(?:\W*(?:error|fehler|{_PAGE}|{_MISSING}))*"
        rf"|(?:\w+\W+){{0,4}}(?:{_PAGE}).{{0,30}}(?:{_MISSING}).{{0,20}}"
        rf"|(?:{_MISSING})(?:\W.{{0,20}}(?:{_PAGE}).{{0,30}})?"
        rf"|(?:\w+\W+){{0,2}}(?:could ?n.t|could not|can.?t|cannot) find.{{0,20}}(?:{_PAGE}).{{0,30}}"
    ),
    "unavailable": (
        "just a moment|checking your browser.*|attention required|security (?:check|verification)"
        "|are you (?:a )?(?:human|robot)|(?:please )?verify (?:that )?you are human|wartungsarbeiten"
        r"|(?:site |website )?(?:is )?(?:under|down for) maintenance|(?:5\d\d\W*)?bad gateway"
        "|(?:service |site |temporarily ){1,2}unavailable"
    ),
    "login": (
        r"(?:please )?(?:log|sign)[ -]?in(?: (?:to|with|required)\b.{0,40})?|(?:bitte )?anmelden|einloggen"
        "|anmeldung|(?:se )?connecter|connexion|identification|iniciar sesi[óo]n|acceder|accedi|accesso"
        "|inloggen|aanmelden|entrar|zaloguj(?: si[ęe])?|logowanie|logga in|log ind|logg inn|giriş(?: yap)?"
        "|войти|вход|увійти|تسجيل الدخول|ログイン|登录|登入|로그인"
        "|(?:authentication|authorization|login) required|access denied|zugriff verweigert|acc[èe]s refus[ée]"
    ),
    "consent": (
        "before you continue.*|bevor sie .{0,40}fortfahren.*|avant (?:de continuer|d.acc[ée]der).*"
        r"|antes de continuar.*|prima di continuare.*|(?:we|wir|nous) (?:value|respect|schätzen) .*"
        "|(?:cookie|privacy)[ -]?(?:consent|settings|choices|preferences)|consent|zustimmung|einwilligung"
        r"|(?:datenschutz|cookie)-?einstellungen|wir verwenden cookies.*|(?:we|this \w+) uses? cookies.*"
    ),
}
# Words in the names of articles about such a page.
_INSTRUCTION = (
    r"how|why|what|causes?|fix\w*|solv\w*|resolv\w*|handl\w*|troubleshoot\w*|wie|warum|wieso|behebe\w*|beheben"
    r"|lösen|comment|pourquoi|corriger|c[óo]mo|hoe|waarom|jak|dlaczego|hur|varför|hvordan|hvorfor|как|почему"
)
_SUBJECT = re.compile(
    rf"\b(?:{_INSTRUCTION}|when|while|whenever|after|before|during|if|despite|errors|custom|wenn|beim?|nach|vor"
    r"|während|trotz|quand|lors|apr[èe]s|pendant|malgr[ée]|cuando|despu[ée]s|durante|al|quando|depois|come"
    r"|perch[ée]|dopo|wanneer|tijdens|gdy|podczas|när|efter|etter|когда|при|после)\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(rf"\b(?:{_INSTRUCTION}) [^|–—·•»]*: ", re.IGNORECASE)
_FAULTS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _NAMES.items()}
_ACCEPT = re.compile(
    "accept|agree|allow|zustimm|akzept|einverstanden|acepta|accett|aceitar|akkoord|godk[äa]nn|同意|принять",
    re.IGNORECASE,
)
# The ids of elements that the usual libraries fill.
_FILLED = {"root", "app", "__next", "__nuxt", "___gatsby", "q-app", "svelte", "application", "main-app"}
# Not the search of the site.
_FIELDS = etree.XPath(
    "//*[self::form or self::button or self::input][not(ancestor-or-self::*[self::header or self::nav"
    " or self::footer or @role='search' or @type='search'])]"
)
_SEPARATOR = re.compile(r"\s+[|–—·•:»/-]\s+|\s*\|\s*|: ")


def fault_of(root: Any, content: Any) -> str | None:
    """The reason for which the page has no content of its own; None for other pages. `content`: its main
    content."""
    length, names = prose(content), list(_names(root))

    def says(fault: str) -> bool:
        return any(map(_FAULTS[fault].fullmatch, names))

    if length <= CONSENT and says("consent") and any(map(_ACCEPT.search, _buttons(root))):
        return "consent"
    if length > HARDLY:
        return None
    # The other parts of a title, such as the name of the website, say nothing about the subject.
    parts = (part for name in names for part in _SEPARATOR.split(name))
    about = filter(_FAULTS["not_found"].search, parts)
    if says("not_found") and not (any(map(_SUBJECT.search, about)) or any(map(_ADVICE.search, names))):
        return "not_found"
    if says("unavailable"):
        return "unavailable"
    if length <= SHELL and _needs_scripts(root):
        return "needs_javascript"
    has_password = any(field.get("type") == "password" for field in content.iter("input"))
    if has_password or (says("login") and _FIELDS(root)):
        return "login"
    return "redirect" if length <= SHELL and any(map(_is_redirect, root.iter("meta"))) else None


def _names(root: Any) -> Iterator[str]:
    """The title and the only heading, and their parts."""
    headings = list(root.iter("h1")) or list(root.iter("h2"))
    for element in [*root.iterfind("head/title"), *(headings if len(headings) == 1 else [])]:
        text = one_line("".join(element.itertext()))
        for part in (text, *_SEPARATOR.split(text)) if len(text) <= MAX_NAME else ():
            yield part.strip(" .!?…:-–—“”\"'")


def _buttons(root: Any) -> Iterator[str]:
    for field in root.iter("button", "input", "a"):
        if field.tag != "input" or field.get("type") in ("submit", "button"):
            yield "".join(field.itertext()) or field.get("value") or ""


def _needs_scripts(root: Any) -> bool:
    """Whether the page speaks of JavaScript, or has an element for scripts to fill."""
    if next(root.iter("script", "noscript"), None) is None:
        return False
    texts = root.xpath("//body//text()[not(parent::script or parent::style)]")
    return "javascript" in "".join(texts).lower() or any(
        ((element.get("id") or "").lower() in _FILLED or element.tag.endswith("-root"))
        and prose(element) <= SHELL
        for element in root.iter(etree.Element)
    )


def _is_redirect(meta: Any) -> bool:
    return (meta.get("http-equiv") or "").lower() == "refresh" and "url" in (
        meta.get("content") or ""
    ).lower()
