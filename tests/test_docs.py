"""The documentation agrees with the code: routes, settings, commands, links, figures."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from bench import benchmarks_page, eval_support
from functions.server import SLUGS
from local import ROOT
from local.shell_environment import OF_OPENTELEMETRY
from local.tools import configuration_page, formats_page, messages_page
from shared.config import LOCAL_MODEL, OTHER_NAMES, ServerSettings, Settings, read_settings
from shared.generation.confidence import CALIBRATIONS
from shared.generation.grounding.sentence_support import LIMITS
from shared.ingestion.file_type import EXTENSIONS

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
DOCS = {path: path.read_text() for path in sorted(ROOT.glob("docs/**/*.md"))}
EXAMPLE = (ROOT / ".env.example").read_text()
# Pages outside docs/, whose links mkdocs does not check.
LINKING = (
    "README.md",
    "AGENTS.md",
    "llms.txt",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "sql/README.md",
    "sdk/python/README.md",
    "sdk/typescript/README.md",
)
# Names of variables of other programs, and of relation types.
NO_SETTINGS = {
    "API_EXTERNAL_URL",
    *(
        "RAG_TOKEN",
        "RAG_DATABASE_URL",
        "RAG_HOSTILE_SECONDS",
        "RAG_DEMO_MODELS",
        "MNEMOSYNE_API_KEY",
        "MNEMOSYNE_BASE_URL",
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE"),
    ),
    *(
        "SUPABASE_PUBLISHABLE_KEYS",
        "SUPABASE_ACCESS_TOKEN",
        "SUPABASE_DB_PASSWORD",
        "SUPABASE_PROJECT_REF",
        "SUPABASE_YES",
    ),
    *("GOOGLE_APPLICATION_CREDENTIALS", "OWNED_BY", "RELATED_TO", "CITEROW_URL", "OCR_LANGUAGES"),
    # Open WebUI's.
    *("OPENAI_API_BASE_URLS", "OPENAI_API_KEYS", "TASK_MODEL_EXTERNAL", "ENABLE_TITLE_GENERATION"),
    *("ENABLE_TAGS_GENERATION", "ENABLE_FOLLOW_UP_GENERATION", "OPENID_PROVIDER_URL", "OAUTH_CLIENT_ID"),
    *("OPENID_REDIRECT_URI", "OAUTH_CLIENT_SECRET", "OAUTH_CODE_CHALLENGE_METHOD", "ENABLE_OAUTH_SIGNUP"),
    "WEBUI_URL",
    # uvicorn's.
    "FORWARDED_ALLOW_IPS",
    # OpenSSL's error.
    "CERTIFICATE_VERIFY_FAILED",
    # The edge function's.
    "RAG_URL",
    # Ollama's.
    "OLLAMA_CONTEXT_LENGTH",
}
# A value that needs RAG_RERANK_MODEL, too; and the settings without a default.
REFUSED = {("RAG_RERANK_PROVIDER", "local")}
REQUIRED = {"supabase_url": "https://project.example", "supabase_anon_key": "key"}


def test_the_pages_list_exactly_the_served_routes():
    served = {
        f"{method} {getattr(route, 'path', '').replace(':path}', '}')}"
        for module in SLUGS.values()
        for route in import_module(module).app.routes
        for method in getattr(route, "methods", set()) - {"HEAD"}
    }
    # A page has the first address of a route of the platform API.
    served -= {route for route in served if route.replace(" /", " /api/", 1) in served}
    listed = {
        route
        for text in DOCS.values()
        for route in re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)`", text)
    }
    assert listed == served


def test_every_function_has_a_route_that_its_tests_name():
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))

    def is_named(route: object) -> bool:
        path = getattr(route, "path", "").partition("{")[0]
        return isinstance(route, APIRoute) and re.search(rf"{re.escape(path)}[\"'/?{{]", tests) is not None

    assert [
        slug for slug, module in SLUGS.items() if not any(map(is_named, import_module(module).app.routes))
    ] == []


def test_the_example_environment_has_exactly_the_settings_with_their_defaults():
    listed = dict(re.findall(r"^(?:# )?([A-Z][A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))
    fields = Settings.model_fields | ServerSettings.model_fields
    assert set(listed) == {name.upper() for name in fields}
    for name, field in fields.items():
        default = "" if field.is_required() or field.default is None else field.default
        if isinstance(default, list | dict):
            default = ",".join(default)
        entry = listed[name.upper()]
        assert entry in (str(default), str(default).lower()) or float(entry) == default, name


def test_every_setting_has_a_comment_of_its_own():
    assert re.findall(r"^.*\n(?:# )?[A-Z][A-Z_]+=.*\n(?:# )?([A-Z][A-Z_]+)=", EXAMPLE, re.MULTILINE) == []


def test_the_page_of_settings_is_generated():
    assert configuration_page.PATH.read_text() == configuration_page.page(), "run: make generated"


def test_a_setting_that_may_contain_a_secret_is_marked():
    rows = [
        line for line in configuration_page.page().splitlines() if re.search(r"\|[^|]*\| secret \|", line)
    ]
    marked = {line.split("`")[1] for line in rows}
    assert marked >= {"OPENAI_API_KEY", "RAG_OTHER_EMBEDDING"}
    assert "RAG_THIRD_PARTY_ISSUERS" not in marked


def test_the_page_of_messages_is_generated():
    assert messages_page.PATH.read_text() == messages_page.page(), "run: make generated"


def test_every_setting_in_the_pages_exists():
    pages = [*DOCS.values(), *((ROOT / page).read_text() for page in LINKING)]
    names = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", "".join(pages)))
    fields = Settings.model_fields | ServerSettings.model_fields
    settings = {name.upper() for name in fields} | set(OTHER_NAMES.values())
    assert names - settings - OF_OPENTELEMETRY - NO_SETTINGS == set()


def test_the_example_settings_in_the_pages_are_accepted(subtests: pytest.Subtests):
    pages = README + "".join(DOCS.values())
    examples = set(re.findall(r"\b([A-Z]+(?:_[A-Z]+)+)=('[^']*'|[^\s`,…]+)", pages))
    for name, value in examples - REFUSED:
        field = {given: own for own, given in OTHER_NAMES.items()}.get(name, name).lower()
        # Not shell variables, and names of secrets in Google's store.
        if field in Settings.model_fields and "$" not in value and ":latest" not in value:
            with subtests.test(name=name, value=value):
                read_settings(**{**REQUIRED, field: value.strip("'")})


def test_the_thresholds_in_the_concepts_are_those_of_the_local_model():
    calibration = CALIBRATIONS[LOCAL_MODEL]
    for limits in (calibration.thresholds, calibration.ceiling):
        pattern = rf"{limits.high}\b.*?{limits.medium}\b"
        assert re.search(pattern, DOCS[ROOT / "docs" / "concepts.md"]), limits


def test_every_make_target_in_the_documents_exists():
    makefile = (ROOT / "Makefile").read_text()
    documents = README + CONTRIBUTING + "".join(DOCS.values())
    for target in set(re.findall(r"(?:^|`)make (\w+)", documents, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def _broken_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        path = page.parent / name if name else page
        headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE) if path.suffix == ".md" else []
        anchors = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
        if not path.exists() or (anchor and anchor not in anchors):
            yield f"{page.name}: {target}"


def test_links_of_pages_outside_docs_lead_somewhere():
    assert [link for page in LINKING for link in _broken_links(ROOT / page)] == []


def test_llms_txt_lists_every_page():
    pages = {path.relative_to(ROOT).as_posix() for path in DOCS if path.parent.name != "decisions"}
    linked = set(re.findall(r"\]\((docs/[^)]+)\)", (ROOT / "llms.txt").read_text()))
    assert pages - linked == set()


def test_readme_contributing_installation_and_edge_function_stay_short():
    assert len(README.splitlines()) <= 200
    assert len(README.split()) <= 2200
    assert len(CONTRIBUTING.splitlines()) <= 150
    assert len(DOCS[ROOT / "docs" / "install.md"].split()) <= 1500
    assert len((ROOT / "supabase/functions/rag/index.ts").read_text().splitlines()) <= 40


def test_the_benchmarks_show_the_latest_figures():
    text = benchmarks_page.PAGE.read_text()
    assert set(re.findall(r"<!-- table: ([\w-]+) -->", text)) == set(benchmarks_page.TABLES)
    assert text == benchmarks_page.page(text)


def test_the_readme_s_figures_are_those_of_the_benchmarks():
    table = README.partition("| Measured |")[2].partition("\n\n")[0]
    figures = re.findall(r"\| ([\d.]+(?: %| ms)?)[; |]", table)
    benchmarks = benchmarks_page.PAGE.read_text()
    assert len(figures) > 10
    assert [figure for figure in figures if figure not in benchmarks] == []


def test_the_limits_of_the_grounding_check_are_the_measured_ones():
    assert json.loads(eval_support.RESULTS.read_text())["in_use"] == asdict(LIMITS)


def test_the_page_of_formats_is_generated_and_has_every_kind_of_file():
    assert formats_page.PATH.read_text() == formats_page.page(), "run: make generated"
    named = set(re.findall(r"`(\.\w+)`", DOCS[ROOT / "docs" / "formats.md"]))
    assert set(EXTENSIONS) <= named
