"""Verdicts on an answer's sentence, checked against the passages that it was written from."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from shared.generation.grounding import markers_of_models
from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from shared.text.sentences import sentences
from tests.shared.examples import match

MANUAL = (
    "The kettle holds 1.7 litres of water. The kettle switches off at 100 degrees. It does not beep when it "
    "is done. Anna Smith founded the Kettle Company in Cork on 3 March 1998. Its turnover rose to $3 million."
)
POLICY = (
    "## Returns\nCustomers may return a toaster within 30 days, if it was never used. We say: “No questions "
    "asked – ever”. Questions go to help@toast.example. About 5 percent of all toasters come "
    "back. See form INC-4821."
)
SOURCES = (match(MANUAL, "Kettle manual"), match(POLICY, "Toaster policy", start=500))


def check(sentence: str) -> CheckResult:
    return Checker(SOURCES).check(sentence)


SUPPORTED_SENTENCES = [
    "The kettle switches off at 100 degrees.",
    "Kettles switch off at 100 degrees.",
    "At 100 degrees, the kettle will switch off.",
    "The kettle holds 1,7 litres.",
    "The kettle does not beep when done.",
    "The Kettle Company was founded by Anna Smith in March 1998.",
    "The Kettle Company was founded in Cork on 1998-03-03.",
    "Its turnover rose to 3,000,000 dollars.",
    "Customers can return toasters within thirty days.",
    "About 5 % of toasters come back.",
    "About five percent of all toasters come back.",
    "For questions, help@toast.example is there.",
    "The form is INC-4821.",
    "Toasters may be returned within 30 days, while the kettle switches off at 100 degrees.",
    'According to the "Toaster policy", customers may return a toaster within 30 days.',
    "They say: 'no questions asked — ever'.",
]


def test_a_paraphrase_of_a_source_is_supported():
    for sentence in SUPPORTED_SENTENCES:
        result = check(sentence)
        assert (result.verdict, result.reasons) == (Verdict.SUPPORTED, ())
        assert 1 <= len(result.evidence) <= 3


UNSUPPORTED_SENTENCES = [
    ("The kettle switches off at 90 degrees.", "number_not_found"),
    ("The kettle holds 17 litres of water.", "number_not_found"),
    ("The kettle holds 100 litres of water.", "number_not_found"),
    ("Its turnover rose to $3 billion.", "number_not_found"),
    ("Its turnover rose to €3 million.", "number_not_found"),
    ("Anna Smith founded the Kettle Company on 4 March 1998.", "number_not_found"),
    ("Anna Smith founded the Kettle Company on 3 May 1998.", "number_not_found"),
    ("Customers may return a toaster within three days.", "number_not_found"),
    ("Questions go to sales@toast.example.", "number_not_found"),
    ("The form is INC-4822.", "number_not_found"),
    ("In Cork, the company was founded by Robert Smith.", "name_not_found"),
    ("The Kettle Company was founded in Dublin.", "name_not_found"),
    ("The kettle does not switch off at 100 degrees.", "negation"),
    ("The kettle never switches off at 100 degrees.", "negation"),
    ("It does beep when it is done.", "negation"),
    ("Customers may return a toaster within 30 days, if it was used.", "negation"),
    ("The Kettle Company founded Anna Smith in Cork.", "roles_swapped"),
    ("Penguins live in the southern hemisphere.", "too_little_in_common"),
    ("Der Wasserkocher schaltet sich bei großer Hitze aus.", "too_little_in_common"),
    ('They say: "many questions asked".', "quotation_not_found"),
    ("```\npip install kettle\n```", "code_not_found"),
]


def test_an_unsupported_sentence_has_a_reason():
    for sentence, reason in UNSUPPORTED_SENTENCES:
        result = check(sentence)
        assert result.verdict is Verdict.UNSUPPORTED
        assert reason in result.reasons
        assert result.evidence == ()


FRAMES = [
    "Here is what I found:", "## Returns of toasters", "Yes.", "No.", "**Summary**", "---", "|---|---|",
    "[1]", "",
    "I don't have enough information to answer this question.", "I don’t know.",
    "The documents do not mention any prices.", "Die Dokumente enthalten keine Angaben zu Preisen.",
    "Les documents ne mentionnent pas les prix.", "Would you like to know more?",
    "When does the kettle switch off?",
]  # fmt: skip
CLAIMS = [
    "## Founded by Robert Miller", "## Founded in 1923", "Did you know that it holds 300 litres?",
    "The documents do not mention prices, but penguins pay half.",
    "The documents do not mention the price of 300 euros.",
]  # fmt: skip


def test_a_sentence_without_a_claim_is_a_frame():
    for verdict, cases in ((Verdict.FRAME, FRAMES), (Verdict.UNSUPPORTED, CLAIMS)):
        assert {sentence: check(sentence).verdict for sentence in cases} == dict.fromkeys(cases, verdict)


def test_the_evidence_is_at_its_offsets_in_the_document():
    assert check("Kettles switch off at 100 degrees.").evidence[0] == Evidence(
        0, MANUAL.index("The kettle switches"), MANUAL.index(" It does not")
    )
    passage = check("Customers can return toasters within 30 days.").evidence[0]
    assert passage.match_index == 1
    assert POLICY[passage.start - 500 : passage.end - 500].startswith("Customers may return a toaster")


def test_two_documents_are_evidence_and_overlapping_chunks_once():
    result = check("Toasters may be returned within 30 days, while the kettle switches off at 100 degrees.")
    assert {evidence.match_index for evidence in result.evidence} == {0, 1}
    start = MANUAL.index("The kettle switches")
    sources = (match(MANUAL, "Manual"), match(MANUAL[start:], "Manual", start=start))
    assert len(Checker(sources).check("Kettles switch off at 100 degrees.").evidence) == 1


SENTENCES_WITH_MARKERS = [
    "The kettle switches off at 100 degrees [1].",
    "The kettle switches off at 100 degrees.[2, 3][1]",
    "The kettle【1†L5】 switches off at 100 degrees. 【2】",
    "The kettle switches off at 100 degrees (source 1).",
    "The kettle switches off[^1] at 100 degrees.",
    "The kettle switches off [1-3] at 100 degrees.",
]


def test_markers_are_not_shown():
    for text in SENTENCES_WITH_MARKERS:
        result = check(text)
        assert result.text == "The kettle switches off at 100 degrees."
        assert result.verdict is Verdict.SUPPORTED


def test_a_document_s_own_date_may_be_stated():
    dated = match("The kettle switches off.", "Kettle manual", occurred_at=datetime(2026, 3, 18, tzinfo=UTC))
    result = Checker([dated]).check("According to the Kettle manual (2026-03-18), the kettle switches off.")
    assert result.verdict is Verdict.SUPPORTED


def test_a_table_row_or_code_block_of_a_source_is_supported():
    sources = [match("| Kettle | 40 |\n| Toaster | 30 |\n\n```\npip install kettle\nkettle --boil\n```")]
    checker = Checker(sources)
    assert checker.check("| Kettle | 40 |").verdict is Verdict.SUPPORTED
    assert checker.check("| Kettle | 35 |").verdict is Verdict.UNSUPPORTED
    assert checker.check("```sh\npip install kettle\n```").verdict is Verdict.SUPPORTED


def test_without_passages_nothing_is_supported():
    assert Checker([]).check("The kettle switches off at 100 degrees.").verdict is Verdict.UNSUPPORTED


WORDS = st.sampled_from(
    ["The", "kettle", "is", "not", "5", "1,000", "“a", "b”", '"', "Anna", "[1]", "»", "3.5", "—", "`x`",
     "5 %", "never", "INC-1", "a@b.example", "*", "(", "no", "水壶会响。", "$3m", "3 May 2024", "12/13/14",
     "?", "…", "'s", "1e9", "٣"]
)  # fmt: skip
TEXTS = st.lists(WORDS | st.just(". The"), max_size=20).map(" ".join) | st.text(max_size=200)


@given(TEXTS, TEXTS)
@example("[1]", "")
def test_every_sentence_of_a_source_is_supported_by_it(text: str, other: str):
    checker = Checker([match(other, "other"), match(text, "this")])
    for sentence in sentences(text):
        message = text[sentence.start : sentence.end]
        result = checker.check(message)
        if result.verdict is Verdict.FRAME:
            assert not any(character.isalnum() for character in markers_of_models.without_markers(message))
        else:
            assert result.verdict is Verdict.SUPPORTED


@given(TEXTS, TEXTS)
def test_every_sentence_gets_a_verdict_with_evidence(text: str, sentence: str):
    result = Checker([match(text, start=7)]).check(sentence)
    assert (result.verdict is Verdict.SUPPORTED) == bool(result.evidence)
    for item in result.evidence:
        assert 7 <= item.start < item.end <= 7 + len(text)
        assert item.match_index == 0
    assert result.verdict is not Verdict.UNSUPPORTED or result.reasons


def test_a_row_of_a_divided_table_is_read_with_its_header():
    row = "| Leuven | 410 | closed |"
    sentence = "In 2025, Leuven had revenue of 410 and was closed on Sunday."
    header = {"header": "| Depot | Revenue 2025 | Sunday |"}
    assert Checker([match(row, "Depots", location=header)]).check(sentence).verdict is Verdict.SUPPORTED
    assert Checker([match(row, "Depots")]).check(sentence).verdict is Verdict.UNSUPPORTED
