"""Code, in every language that is read: functions stay whole where they fit, whatever stands around them."""

import pytest

from shared.errors import InvalidRequest
from shared.ingestion import file_type
from shared.ingestion.chunking.code_blocks import LANGUAGES, code_language
from shared.ingestion.chunking.strategy import ChunkingPlan
from shared.ingestion.parsers.code_functions import GRAMMARS
from tests.shared.ingestion.chunking.test_chunk_packer import chunk, uncovered, words
from tests.shared.sample_source_code import SOURCES

# Comments; JSON has none.
HASH = "# {}\n"
FILLED = {
    "css": "/* {} */\n", "html": "<!-- {} -->\n", "bash": HASH, "python": HASH, "ruby": HASH, "json": "",
}  # fmt: skip


def cut(text: str, language: str, size: int, overlap: int = 0) -> list[str]:
    plan = ChunkingPlan("code", "general", code_language(language))
    chunks = chunk(text, size=size, overlap=overlap, count=words, plan=plan)
    assert uncovered(text, chunks) == []
    assert all(text[item.start : item.end] == item.text for item in chunks)
    assert all(item.tokens <= size for item in chunks)
    return [item.text for item in chunks]


def test_every_language_has_a_grammar_and_a_source():
    assert set(LANGUAGES) == set(GRAMMARS) == set(SOURCES)
    assert list(LANGUAGES) == sorted(LANGUAGES)
    assert set(file_type.LANGUAGES.values()) <= set(LANGUAGES)


def test_a_function_that_fits_is_not_split_and_has_its_comments(subtests: pytest.Subtests):
    for language in LANGUAGES:
        with subtests.test(language):
            first, second = SOURCES[language].split("\n%\n")
            comment = FILLED.get(language, "// {}\n").format("It is said of the second")
            size = max(words(first), words(second) + words(comment)) + 2
            chunks = cut(f"{first}\n\n{comment}{second}\n", language, size, 4)
            # Without the marks around all of the code.
            start = first.removeprefix("<?php\n").removeprefix("{\n")
            end = (comment + second).removesuffix("\n}" * (language == "json"))
            for source in (start, end):
                assert any(source in part for part in chunks), (source, chunks)


CLASS = '''"""Kilns."""

import hot


class Kiln:
    """It is hot. Very."""

    def heat(self):
        a = 1
        return a

    # How it cools.
    @property
    def cool(self):
        b = 2
        if b:
            c = 3
        return b
'''


CUTS = [
    # A too long class is split between its methods, a too long function between its blocks.
    (CLASS, 15, 0, [
        '"""Kilns."""\n\nimport hot',
        'class Kiln:\n    """It is hot. Very."""\n\n    def heat(self):\n        a = 1\n        return a',
        "    # How it cools.\n    @property\n    def cool(self):\n"
        "        b = 2\n        if b:\n            c = 3",
        "        return b",
    ]),
    ("def f():\n    a = 1\n    b = 2\n    if a:\n        c = 3\n        d = 4\n    return a\n", 10, 0,
     ["def f():\n    a = 1\n    b = 2", "    if a:\n        c = 3\n        d = 4\n    return a"]),
    # Functions have no overlap; invalid code is split at empty lines.
    ("def f():\n    a = 1\n    return a\n\n\ndef g():\n    b = 2\n    return b\n", 8, 3,
     ["def f():\n    a = 1\n    return a", "def g():\n    b = 2\n    return b"]),
    ("def f(:\n    a = = 1\n\ndef g(\n    b = 2 ]\n", 8, 0, ["def f(:\n    a = = 1", "def g(\n    b = 2 ]"]),
]  # fmt: skip


def test_code_is_split_between_its_blocks(subtests: pytest.Subtests):
    for text, size, overlap, expected in CUTS:
        with subtests.test(text=text):
            assert cut(text, "python", size, overlap) == expected


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("python", "# Hot.\n@cache\n@fast\ndef f():"),
        ("rust", "/// Hot.\n#[inline]\nfn f() {"),
        ("cpp", "// Hot.\ntemplate <class T>\nT f() {"),
        ("typescript", "/* Hot. */\n@fast\nclass F {"),
    ],
)
def test_a_comment_stays_with_a_function_that_does_not_fit(language: str, lines: str):
    body = "    if (a) {\n        b();\n        c();\n    }\n" * 4
    chunks = cut(f"x = 1\n\n{lines}\n{body}}}\n", language, 12)
    assert any(lines in part for part in chunks)


def test_invalid_code_is_split_too(subtests: pytest.Subtests):
    cases: dict[str, str] = {
        "broken": "def f(:\n    a = 1\n    b = = 2\n\n\ndef g(\n    c = 3 ]\n",
        "words": "Just words. No code at all.",
        "brackets": "((((\n}}}}\n",
        # It ends the process of some parsers.
        "brackets in brackets": "[{" * 200_000,
    }
    for case, text in cases.items():
        # The text without end takes Go's parser much longer, and ends the same way.
        for language in ("python", "go")[: 1 if len(text) > 100_000 else 2]:
            with subtests.test(case, language=language):
                assert cut(text, language, 8)


def test_a_long_line_is_split_between_syntax_nodes():
    text = "const a = [" + ", ".join(f"{{name: 'größe {n}', hot: [{n}, {n}]}}" for n in range(200)) + "];"
    chunks = cut(text, "js", 60)
    assert len(chunks) > 10
    assert all(part.startswith(("const", "{name", ",")) for part in chunks)


def test_languages_have_aliases():
    names = {"Python": "python", " C++ ": "cpp", "c#": "csharp", "ts": "typescript"}
    assert {text: code_language(text) for text in names} == names


def test_an_unknown_language_is_refused_with_the_known_ones(subtests: pytest.Subtests):
    for text in ("cobol", "", None, 3, ["python"]):
        with subtests.test(text=text):
            with pytest.raises(InvalidRequest, match=r"bash, c, cpp, .*python.* typescript") as refused:
                code_language(text)
            assert refused.value.code == "unsupported_language"
