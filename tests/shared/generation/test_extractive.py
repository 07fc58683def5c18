"""Extracted answers: every sentence verbatim, under its own document's number; said when none is direct."""

import re
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from local import ROOT
from local.seed_demo import demo_files
from shared.generation.cited_documents import cite
from shared.generation.extractive.answer import INDIRECT, MODEL, extract
from shared.generation.extractive.weights import MAX_ITEMS, MAX_SENTENCES
from shared.generation.passage_statements import without_markup
from shared.generation.question_form import MAX_PARTS, QuestionForm
from shared.ingestion.chunking.chunked_document import chunk_document
from shared.models.embeddings import Embedder, embed
from shared.text.normalize import clean
from shared.text.stemming import content_words
from shared.types import GeneratedText, Match
from tests.shared.examples import match

QUESTIONS = [
    item["text"] for item in tomllib.loads((ROOT / "local" / "questions.toml").read_text())["question"]
]


def answer(embedder: Embedder, question: str, *matches: Match) -> GeneratedText:
    return extract(question, matches, cite(matches), lambda texts: embed(embedder, texts))


def cited_sentences(draft: GeneratedText, matches: Sequence[Match]) -> list[tuple[int, str]]:
    """Each sentence with its citation's number. Fails unless each paragraph cites the document of its title,
    and each sentence has the words that stand at its place in that document."""
    citations = cite(matches)
    for paragraph in draft.text.removeprefix(f"{INDIRECT}\n\n").split("\n\n"):
        parts = re.fullmatch(
            r'(?:According to )?"(.+?)"(?: \(([\d-]{10})\))?(?:: | says otherwise: ")(.+) \[(\d)\]', paragraph
        )
        assert parts, paragraph
        cited = citations[int(parts[4]) - 1].match
        assert cited.title == parts[1]
        assert parts[2] == (cited.occurred_at.date().isoformat() if cited.occurred_at else None)
    for sentence in draft.sentences:
        hit = sentence.match
        assert hit in matches
        assert hit.document_id == citations[sentence.number - 1].match.document_id
        source = hit.text[sentence.start - hit.span[0] : sentence.end - hit.span[0]]
        assert sentence.words, source
        if not source.startswith("|"):
            assert without_markup(source).rstrip(".") in sentence.text
        assert sentence.words <= content_words(f"{hit.text}")
    return [(sentence.number, sentence.text) for sentence in draft.sentences]


@pytest.fixture(scope="module")
def corpus(embedder: Embedder) -> list[Match]:
    """Every chunk of the demo's documents."""
    matches: list[Match] = []
    for file, _ in demo_files():
        document = file.document
        text, name = clean(document.text), f"{document.org_id} {document.external_id}"
        fields: dict[str, Any] = {
            "title": document.title,
            "lang": document.lang,
            "occurred_at": document.occurred_at,
        }
        chunks = chunk_document(embedder, document.title, text, document.lang).chunks
        matches += [match(item.text, name, start=item.start, **fields) for item in chunks]
    return matches


def best_matches(question: str, corpus: list[Match]) -> list[Match]:
    """The eight matches that share most words with the question. Embeddings of the corpus would take long,
    and the test does not depend on the best match."""
    words = content_words(question)

    def shared_words(hit: Match) -> int:
        return len(words & content_words(f"{hit.title} {hit.text}"))

    return sorted(corpus, key=shared_words, reverse=True)[:8]


def test_every_sentence_about_the_demo_corpus_is_in_the_cited_document(
    subtests: pytest.Subtests, embedder: Embedder, corpus: list[Match]
):
    for question in QUESTIONS:
        with subtests.test(question=question):
            best = best_matches(question, corpus)
            draft = answer(embedder, question, *best)
            assert draft.model == MODEL == "extractive"
            if draft.is_abstention:
                assert question == "What is the capital of Mongolia?"
                continue
            spoken = cited_sentences(draft, best)
            assert 1 <= len(spoken) <= MAX_ITEMS
            assert len(set(spoken)) == len(spoken)
            for _, sentence in spoken:
                assert not sentence.endswith("?")
                assert not re.search(r"^[#|*-]|\*\*|`|\]\(", sentence)


def test_the_answering_sentence_cites_its_document_s_number(embedder: Embedder):
    matches = (
        match("The toaster browns bread in two minutes. It has two slots for bread.", "Toaster"),
        match("The kettle holds 1.7 litres of water. The kettle switches off at 100 degrees.", "Kettle"),
    )
    draft = answer(embedder, "At how many degrees does the kettle switch off?", *matches)
    assert (2, "The kettle switches off at 100 degrees.") in cited_sentences(draft, matches)
    assert INDIRECT not in draft.text


def test_headings_and_questions_are_not_answers(embedder: Embedder):
    text = (
        "## The battery of the FL-300 logger lasts how long\n"
        "How long does the battery of the FL-300 logger last?\n"
        "Anna: So how long does the battery of the FL-300 logger last, then?\n"
        "The battery of the FL-300 logger lasts five years."
    )
    matches = (match(text, "Guide"),)
    draft = answer(embedder, "How long does the battery of the FL-300 logger last?", *matches)
    assert cited_sentences(draft, matches) == [(1, "The battery of the FL-300 logger lasts five years.")]


def test_a_question_in_any_markup_is_not_an_answer(subtests: pytest.Subtests, embedder: Embedder):
    cases: dict[str, str] = {
        "quoted": '"How long does the battery of the logger last?"',
        "full-width": "How long does the battery of the logger last？",
        "bold": "**How long does the battery of the logger last?**",
        "space": "How long does the battery of the logger last? ",
    }
    for case, request in cases.items():
        with subtests.test(case):
            matches = (match(f"{request}\nThe battery of the logger lasts five years.", "Guide"),)
            draft = answer(embedder, "How long does the battery of the logger last?", *matches)
            assert cited_sentences(draft, matches) == [(1, "The battery of the logger lasts five years.")]


def test_a_sentence_in_two_overlapping_chunks_is_used_once(embedder: Embedder):
    text = "The kettle holds 1.7 litres of water. The kettle switches off at 100 degrees."
    start = text.index("The kettle switches")
    matches = (match(text, "Kettle"), match(text[start:], "Kettle", start=start))
    draft = answer(embedder, "At how many degrees does the kettle switch off?", *matches)
    assert draft.text.count("The kettle switches off at 100 degrees.") == 1


def test_a_sentence_in_two_documents_is_used_once(embedder: Embedder):
    text = "The kettle switches off at 100 degrees."
    matches = (match(text, "Kettle"), match(text, "Copy"))
    draft = answer(embedder, "At how many degrees does the kettle switch off?", *matches)
    assert cited_sentences(draft, matches) == [(1, text)]


def test_a_sentence_repeated_in_a_document_is_used_once(embedder: Embedder):
    text = "The kettle switches off at 100 degrees."
    matches = (match(f"{text} {text}\n{text}", "Kettle"),)
    draft = answer(embedder, "At how many degrees does the kettle switch off?", *matches)
    assert cited_sentences(draft, matches) == [(1, text)]


def test_sentences_that_differ_in_a_number_are_both_used(subtests: pytest.Subtests, embedder: Embedder):
    cases = [
        (
            "How much warranty has a logger of each year?",
            "A logger of 2025 has 24 months of warranty.", "A logger of 2026 has 36 months of warranty.",
        ),
        (
            "Which logger accepts 6 °C in the tank?",
            "The FL-200 logger accepts 6 °C in the tank.", "The FL-300 logger accepts 6 °C in the tank.",
        ),
    ]  # fmt: skip
    for question, one, other in cases:
        with subtests.test(one=one):
            matches = (match(one, "Old terms"), match(other, "New terms"))
            assert {*cited_sentences(answer(embedder, question, *matches), matches)} == {(1, one), (2, other)}


def test_an_indirect_answer_is_introduced_as_such(embedder: Embedder):
    matches = (match("The kettle holds 1.7 litres of water. It weighs 900 grams.", "Kettle"),)
    draft = answer(embedder, "Who sold the first kettle in Norway?", *matches)
    assert draft.text.startswith(f"{INDIRECT}\n\nAccording to ")
    assert cited_sentences(draft, matches)


def test_without_a_suitable_sentence_the_best_passage_is_shown_as_indirect(
    subtests: pytest.Subtests, embedder: Embedder
):
    for text in ("## Kettle", "Is it hot?\nWho knows?", "|---|---|", "Yes.\nNo."):
        with subtests.test(text=text):
            matches = (match(text, "Kettle"), match("## Other", "Other"))
            draft = answer(embedder, "How hot is the kettle?", *matches)
            assert draft == GeneratedText(f'{INDIRECT}\n\nAccording to "Kettle": {text} [1]', MODEL)


def test_without_a_word_of_the_question_there_is_no_answer(subtests: pytest.Subtests, embedder: Embedder):
    for text in ("The kettle holds 1.7 litres of water. It weighs 900 grams.", "## Kettle"):
        with subtests.test(text=text):
            draft = answer(embedder, "Who won the football world cup?", match(text, "Kettle"))
            assert draft == GeneratedText("", MODEL, is_abstention=True)


def test_words_of_another_language_or_script_do_not_prevent_an_answer(
    subtests: pytest.Subtests, embedder: Embedder
):
    """Words in common would not count: the embeddings of such a model compare meanings."""
    cases = {
        "language": (
            "Wie heiß wird das Wasser?",
            match("The kettle switches off at 100 degrees.", "Kettle", lang="en"),
        ),
        "script": ("水壶在多少度关闭？", match("这个水壶在一百度的时候会自动关闭。", "水壶", lang="zh")),
        "no words": ("What is it?", match("The kettle switches off at 100 degrees.", "Kettle")),
    }
    for case, (question, passage) in cases.items():
        with subtests.test(case):
            assert passage.text in answer(embedder, question, passage).text


def test_a_passage_that_only_introduces_something_is_quoted(embedder: Embedder):
    text = "Steps to reset the device password quickly:"
    draft = answer(embedder, "How do I reset the device password?", match(text, "Reset"))
    assert text in draft.text


def test_the_number_of_sentences_is_limited(embedder: Embedder):
    text = " ".join(f"Kettle number {number} switches off at {number + 90} degrees." for number in range(9))
    matches = (match(text, "Kettles"), match(text.replace("Kettle", "Boiler"), "Boilers"))
    spoken = cited_sentences(
        answer(embedder, "At how many degrees do the kettles switch off?", *matches), matches
    )
    assert len(spoken) == MAX_SENTENCES == 2


def test_a_question_of_two_parts_has_sentences_for_both(embedder: Embedder):
    text = (
        "The billing service was down on Monday. It was down because webhook retries filled the queue of the "
        "billing service. The billing service is owned by the Payments team."
    )
    matches = (match(text, "Billing"),)
    draft = answer(embedder, "Why was the billing service down and who owns the billing service?", *matches)
    assert len(cited_sentences(draft, matches)) == 3
    assert QuestionForm.of("What is the fee, and where do I pay?").parts == 2
    assert QuestionForm.of("and what " * 1000).parts == MAX_PARTS


def test_a_document_s_sentences_keep_their_order(embedder: Embedder):
    text = (
        "The kettle with number 1 was built in Cork. The weather in Cork was fine. "
        "The kettle with number 2 was built in Mallow. The kettle with number 3 was built in Bergen."
    )
    matches = (match(text, "Kettles"),)
    spoken = [
        sentence
        for _, sentence in cited_sentences(
            answer(embedder, "Where was each kettle built?", *matches), matches
        )
    ]
    assert len(spoken) > 1
    assert [text.index(sentence) for sentence in spoken] == sorted(
        text.index(sentence) for sentence in spoken
    )


def test_the_sentence_after_a_chosen_one_is_included(embedder: Embedder):
    """It is worth about half of the best, which alone would not be enough."""
    follower = "The reason was a fuse in the kitchen that had blown."
    matches = (
        match(f"The kettle stopped on Monday at noon. {follower} Lunch costs five euros a person.", "Review"),
    )
    spoken = cited_sentences(answer(embedder, "Why did the kettle stop?", *matches), matches)
    assert spoken == [(1, "The kettle stopped on Monday at noon."), (1, follower)]


def test_a_dated_document_is_quoted_with_its_date(embedder: Embedder):
    moment = datetime(2026, 3, 18, 9, tzinfo=UTC)
    matches = (match("The kettle switches off at 100 degrees.", "Kettle", occurred_at=moment),)
    draft = answer(embedder, "At how many degrees does the kettle switch off?", *matches)
    assert draft.text == 'According to "Kettle" (2026-03-18): The kettle switches off at 100 degrees. [1]'


def test_a_document_that_is_not_cited_is_not_quoted(embedder: Embedder):
    answering = match("The kettle switches off at 100 degrees.", "Sixth")
    matches = (
        *(match(f"The toaster has {number} degrees of heat.", str(number)) for number in range(5)),
        answering,
    )
    draft = answer(embedder, "At how many degrees does the kettle switch off?", *matches)
    assert {number for number, _ in cited_sentences(draft, matches)} <= {1, 2, 3, 4, 5}
    assert answering.text not in draft.text


def test_a_row_is_told_with_the_names_of_the_columns_that_the_question_names(embedder: Embedder):
    text = (
        "| Model | Wheels | Maximum load | Range | Price | Deposit |\n|---|---|---|---|---|---|\n"
        "| M1 Swift | 2 | 80 kg | 60 km | 24 € | 100 € |\n| M2 Carry | 3 | 180 kg | 45 km | 39 € | 200 € |"
    )
    matches = (match(text, "Bikes"),)
    draft = answer(embedder, "What is the maximum load of the M1 Swift?", *matches)
    assert cited_sentences(draft, matches)[0] == (1, "M1 Swift: Maximum load 80 kg.")
    assert text[draft.sentences[0].start :].startswith("| M1 Swift | 2 |")


FARES = (
    "| Ticket | Low season | High season | Night crossing |\n| --- | --- | --- | --- |\n"
    "| Adult | 18.50 | 24.00 | 31.00 |\n| Child 4 to 14 | 9.00 | 12.00 | 15.50 |\n"
    "| Camper van up to 8 m | 71.00 | 98.00 | not carried |"
)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the night crossing fare for a child?", ["Child 4 to 14"]),
        ("What do children pay in high season?", ["Child 4 to 14"]),
        ("How much do camper vans cost in high season?", ["Camper van up to 8 m"]),
        ("Compare the fares of an adult ticket and a child ticket.", ["Adult", "Child 4 to 14"]),
    ],
)
def test_the_rows_with_the_question_s_words_are_quoted_alone(
    embedder: Embedder, question: str, names: list[str]
):
    matches = (match(FARES, "Fares"),)
    quoted = cited_sentences(answer(embedder, question, *matches), matches)
    assert [sentence.partition(":")[0] for _, sentence in quoted] == names


def test_a_question_is_no_label_of_a_sentence(embedder: Embedder):
    sentence = "These lifetimes of the battery were measured at +4 °C."
    matches = (match(f"## How long does the battery of an FL-300 last?\n{sentence}", "Batteries"),)
    draft = answer(embedder, "How long does the battery of an FL-300 last?", *matches)
    assert [text for _, text in cited_sentences(draft, matches)] == [sentence]


def test_a_question_for_a_list_may_begin_with_a_preposition(embedder: Embedder):
    items = ["Formatkreissäge", "Abrichthobel", "Drehbank", "Lasercutter"]
    text = "Für die folgenden Maschinen braucht man eine Einweisung:\n\n- " + "\n- ".join(items)
    draft = answer(embedder, "Für welche Maschinen brauche ich eine Einweisung?", match(text, "Werkstatt"))
    assert all(item in draft.text for item in items)


def test_a_limit_is_quoted_with_what_it_limits(embedder: Embedder):
    text = (
        "Employees park free of charge. Beside the gate, spaces are meant for electric cars only. It rains."
    )
    matches = (match(text, "House rules"),)
    spoken = cited_sentences(answer(embedder, "Do employees park free of charge?", *matches), matches)
    assert " ".join(sentence for _, sentence in spoken) == text.removesuffix(" It rains.")


@pytest.mark.parametrize(
    "following", ["On Sundays it closes at 17:00.", "If she is away, Hugo Martens opens the desk."]
)
def test_a_sentence_is_quoted_with_the_next_one_that_refers_to_it(embedder: Embedder, following: str):
    matches = (match(f"Nadia Benali opens the service desk at 07:00. {following} It rains.", "Desk"),)
    draft = answer(embedder, "When does the service desk open?", *matches)
    assert cited_sentences(draft, matches) == [
        (1, "Nadia Benali opens the service desk at 07:00."),
        (1, following),
    ]


def test_a_question_for_yes_or_no_begins_with_the_sentence_that_decides(embedder: Embedder):
    text = "Resetting a device takes a minute. Resetting a device never deletes its measurements."
    matches = (match(text, "Devices"),)
    spoken = cited_sentences(
        answer(embedder, "Does resetting a device delete its measurements?", *matches), matches
    )
    assert spoken[0] == (1, "Resetting a device never deletes its measurements.")


def test_a_question_for_a_reason_begins_with_the_sentence_that_gives_it(embedder: Embedder):
    matches = (
        match("The outage of the gateway began at 02:14.", "Outage"),
        match("The reason was an expired certificate of the gateway.", "Notice"),
    )
    spoken = cited_sentences(answer(embedder, "What caused the outage of the gateway?", *matches), matches)
    assert spoken[0] == (2, "The reason was an expired certificate of the gateway.")


def test_a_list_is_quoted_whole_and_in_order(embedder: Embedder):
    items = [f"{number}. Step with a {name}." for number, name in enumerate(("badge", "desk", "rule"), 1)]
    lead = "A new colleague goes through onboarding like this:"
    matches = (match("\n".join([lead, "", *items, "", "Lunch is at noon for all colleagues."]), "Start"),)
    draft = answer(embedder, "What are the steps of onboarding?", *matches)
    spoken = [sentence for _, sentence in cited_sentences(draft, matches)]
    assert spoken == [f"{lead} {items[0]}", *items[1:]]


def test_a_question_for_several_things_is_answered_by_the_rows_of_a_table(embedder: Embedder):
    rows = ["| Mainwerk | Hosting |", "| Fjordpost | E-mail |", "| Signalhuset | Text messages |"]
    text = "\n".join(["## Sub-processors", "", "| Name | Task |", "|---|---|", *rows])
    draft = answer(embedder, "Which sub-processors does the service have?", match(text, "Data protection"))
    assert draft.text.endswith(
        "Sub-processors: Mainwerk: Task Hosting. Fjordpost: Task E-mail. Signalhuset: Task Text messages. [1]"
    )


def test_a_heading_is_shown_for_each_document(embedder: Embedder):
    matches = tuple(
        match(f"## Opening hours\n\n| Day | Hours |\n|---|---|\n| Monday | {hours} |", place)
        for place, hours in (("Oslo", "9 to 17"), ("Rome", "10 to 18"))
    )
    draft = answer(embedder, "What are the opening hours on Monday?", *matches)
    assert draft.text.count("Opening hours: Monday: Hours ") == 2


def test_all_rows_are_quoted_where_the_question_compares_them(embedder: Embedder):
    rows = (
        "| Depot | Saturday | Sunday |\n| --- | --- | --- |\n| Leuven depot | 08:00 to 16:00 | closed |\n"
        "| Cork depot | 09:00 to 13:00 | closed |\n| Gdynia | 07:00 to 20:00 | 10:00 to 14:00 |"
    )
    matches = (match(f"{rows}\n\nA depot manager may change the hours before a holiday.", "Opening hours"),)
    for question in ("Which depots are open on Sunday?", "Which depot has the longest hours on Saturday?"):
        spoken = cited_sentences(answer(embedder, question, *matches), matches)
        assert [sentence.partition(":")[0] for _, sentence in spoken] == [
            "Leuven depot",
            "Cork depot",
            "Gdynia",
        ]


def test_a_list_under_the_heading_that_the_question_repeats_is_quoted_whole(embedder: Embedder):
    items = ["- alcohol", "- fines and parking tickets", "- hotel films"]
    text = "\n".join(["## Not paid", "", *items, "", "## Taxis", "", "Taxis are paid after 22:00."])
    matches = (match(text, "Travel expenses"),)
    for question in ("What is not paid as travel expenses?", "travel expenses not paid"):
        draft = answer(embedder, question, *matches)
        assert draft.text.endswith("Not paid: alcohol. fines and parking tickets. hotel films. [1]")
    draft = answer(embedder, "When are taxis paid?", *matches)
    assert "alcohol" not in draft.text


def test_a_long_list_is_cut(embedder: Embedder):
    items = "\n".join(f"- Onboarding step with tool number {number}" for number in range(40))
    draft = answer(embedder, "List the steps of onboarding", match(items, "Start"))
    assert len(draft.sentences) == MAX_ITEMS


def test_items_without_words_are_left_out(embedder: Embedder):
    matches = (match("- the\n- a\n- The kettle switches off at 100 degrees", "Kettle"),)
    spoken = cited_sentences(
        answer(embedder, "At how many degrees does the kettle switch off?", *matches), matches
    )
    assert spoken == [(1, "The kettle switches off at 100 degrees.")]


def test_a_fact_stands_under_its_heading(embedder: Embedder):
    text = (
        "# Pump P-210\nMotor power: 5.5 kW\nWeight: 96 kg\n\n# Pump P-310\nMotor power: 9 kW\nWeight: 120 kg"
    )
    matches = (match(text, "Data sheets"),)
    spoken = cited_sentences(answer(embedder, "What is the motor power of pump P-310?", *matches), matches)
    assert (1, "Pump P-310: Motor power: 9 kW.") in spoken


def test_an_item_belongs_to_the_line_that_introduces_its_list(embedder: Embedder):
    text = (
        "The depots used this much electricity in 2025:\n\n- Cork: 2.1 GWh\n- Mallow: 0.9 GWh\n\n"
        "Mallow has a new roof."
    )
    matches = (match(text, "Letter"),)
    spoken = cited_sentences(
        answer(embedder, "How much electricity did Mallow use in 2025?", *matches), matches
    )
    assert spoken == [(1, "The depots used this much electricity in 2025: Mallow: 0.9 GWh.")]


def test_a_sentence_about_another_name_is_left_out(embedder: Embedder):
    text = "The Old Tamsin has six cabins and a bar. The New Tamsin has nine cabins and a bar."
    matches = (match(text, "Boats"),)
    spoken = cited_sentences(answer(embedder, "How many cabins has the Old Tamsin?", *matches), matches)
    assert spoken == [(1, "The Old Tamsin has six cabins and a bar.")]


def test_a_sentence_with_another_identifier_of_the_same_form_is_left_out(embedder: Embedder):
    matches = (match("The E-55 code is a reminder. It rains. The E-17 code stops the logger.", "Codes"),)
    spoken = cited_sentences(answer(embedder, "Does code E-55 stop the logger?", *matches), matches)
    assert spoken == [(1, "The E-55 code is a reminder.")]


def test_a_question_for_a_number_or_a_time_is_answered_with_one(embedder: Embedder):
    matches = match("The kettle switches off.", "Kettle"), match("The kettle stops after 4 minutes.", "Data")
    for question in (
        "How long until the kettle switches off?",
        "After how many minutes does the kettle stop?",
    ):
        spoken = cited_sentences(answer(embedder, question, *matches), matches)
        assert spoken[0] == (2, "The kettle stops after 4 minutes.")
    spoken = cited_sentences(answer(embedder, "How does the kettle switch off?", *matches), matches)
    assert spoken[0] == (1, "The kettle switches off.")


def test_a_sentence_without_another_word_of_the_question_is_left_out(embedder: Embedder):
    text = "The harbour office issues permits for the pier. It rains. Permits for the pier are free."
    matches = (match(text, "Harbour"),)
    spoken = cited_sentences(answer(embedder, "Who issues permits for the pier?", *matches), matches)
    assert spoken == [(1, "The harbour office issues permits for the pier.")]


def test_a_denial_behind_the_best_sentence_is_quoted(embedder: Embedder):
    text = "A lock is set back to firmware 2.6 in the workshop. This is not possible over the network."
    matches = (match(text, "Locks"),)
    draft = answer(embedder, "Can a lock be set back to firmware 2.6 by radio?", *matches)
    assert " ".join(sentence for _, sentence in cited_sentences(draft, matches)) == text


def test_a_sentence_under_a_heading_for_the_cause_is_a_reason(embedder: Embedder):
    text = "Smoke came out of the cabinet.\n\n## Cause\nWater had entered a battery of the cabinet."
    matches = (match(text, "Incident"),)
    draft = answer(embedder, "What was the reason for the smoke in the cabinet?", *matches)
    spoken = cited_sentences(draft, matches)
    assert spoken[-1] == (1, "Water had entered a battery of the cabinet.")


def test_an_older_version_is_quoted_only_if_the_question_names_it(embedder: Embedder):
    old = match("The probe HP-8 costs 32 euros.", "Prices 2025", occurred_at=datetime(2025, 1, 1, tzinfo=UTC))
    new = match(
        "Loggers cost 129 euros. The price of probe HP-8 is 34 euros without a cable.",
        "Prices 2026",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    for question, number in (("What does the probe HP-8 cost?", 2), ("What was its price in 2025?", 1)):
        draft = answer(embedder, question, old, new)
        assert draft.sentences[0].number == number
    assert "32" not in answer(embedder, "What does the probe HP-8 cost?", old, new).text


def test_documents_in_the_language_of_the_question_come_first(embedder: Embedder):
    english = match("The leave is 30 days a year.", "Leave", lang="en")
    german = match("Der Urlaub (leave) beträgt 30 Tage im Jahr.", "Urlaub", lang="de")
    draft = answer(
        embedder, "Wie viele Tage im Jahr beträgt der Urlaub, leave of 30 days a year?", english, german
    )
    assert draft.sentences[0].number == 2


def test_the_newest_value_leads_and_the_older_one_is_noted(subtests: pytest.Subtests, embedder: Embedder):
    old = match(
        "The small room costs 45 euros a day.", "Prices 2025", occurred_at=datetime(2025, 3, 1, tzinfo=UTC)
    )
    new = match(
        "The small room costs 55 euros a day.", "Prices 2026", occurred_at=datetime(2026, 3, 1, tzinfo=UTC)
    )
    cases = [
        ("What does the small room cost a day?", "says otherwise"),
        ("Was kostet der small room pro day in euros?", "sagt etwas anderes"),
    ]
    for question, otherwise in cases:
        with subtests.test(question=question):
            draft = answer(embedder, question, old, new)
            assert draft.text.removeprefix(f"{INDIRECT}\n\n") == (
                'According to "Prices 2026" (2026-03-01): The small room costs 55 euros a day. [2]\n\n'
                f'"Prices 2025" (2025-03-01) {otherwise}: "The small room costs 45 euros a day." [1]'
            )
            assert [sentence.number for sentence in draft.sentences] == [2, 1]


def test_a_word_of_the_question_may_be_in_a_compound(embedder: Embedder):
    rules = match("Mitarbeitende erhalten 30 Tage Jahresurlaub.", "Regeln", lang="de")
    assert "Jahresurlaub" in answer(embedder, "Wie lange habe ich Urlaub?", rules).text


def test_a_follow_up_is_answered_by_itself(subtests: pytest.Subtests, embedder: Embedder):
    """With the words of the question that it continues, but not with that question's answer."""
    kettle = match("The kettle switches off at 100 degrees. It holds 1.7 litres of water.")
    offices = match("The office in Berlin opens at 8:00. The office in Paris opens at 9:00.")
    codes = match(
        "Error code E-55 means that the pump is blocked. Error code E-17 means that the filter is full."
    )
    kettles = match("Kettle 3 becomes 63 degrees hot. Kettle 4 becomes 71 degrees hot.")
    prices = match("The prices for 2023 are 40 euros. The prices for 2024 are 45 euros.")
    cases = [
        (codes, "What does error code E-55 mean?", "And E-17?", "the filter"),
        (kettles, "How hot does Kettle 3 become?", "And Kettle 4?", "71 degrees"),
        (prices, "What were the prices for 2023?", "And for 2024?", "45 euros"),
        (
            kettle,
            "At how many degrees does the kettle switch off?",
            "How much water does it hold?",
            "1.7 litres",
        ),
        (offices, "When does the office in Berlin open?", "And in Paris?", "9:00"),
    ]
    for passage, previous, question, expected in cases:
        with subtests.test(question=question):
            draft = extract(
                question, [passage], cite([passage]), lambda texts: embed(embedder, texts), None, previous
            )
            (sentence,) = draft.sentences
            assert expected in sentence.text
