"""Extracted answers: every sentence verbatim, under its own document's number; said when none is direct."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from local import ROOT
from local.seed_demo import demo_files
from shared.generation.cited_documents import cite
from shared.generation.extractive.answer import INDIRECT as INDIRECT_BY_LANGUAGE
from shared.generation.extractive.answer import MODEL, extract
from shared.generation.extractive.weights import EXCERPT_CHARACTERS, MAX_ITEMS, MAX_SENTENCES
from shared.generation.passage_statements import without_markup
from shared.generation.unmentioned_word import replaced_version
from shared.ingestion.chunking.chunked_document import chunk_document
from shared.models.embedding_roles import Role, Roles
from shared.models.embeddings import Embedder, embed
from shared.text.normalize import clean
from shared.text.stemming import content_words
from shared.types import GeneratedText, Match
from tests.shared.examples import match

INDIRECT = INDIRECT_BY_LANGUAGE["en"]
QUESTIONS = [
    item["text"] for item in tomllib.loads((ROOT / "local" / "questions.toml").read_text())["question"]
]


def answer(embedder: Embedder, question: str, *matches: Match) -> GeneratedText:
    return extract(question, matches, cite(matches), partial(vectors, embedder))


VECTORS: dict[str, list[float]] = {}


def vectors(embedder: Embedder, texts: Sequence[str], roles: Roles) -> list[list[float]]:
    """Each text is embedded once, since the questions have many passages in common."""
    new = [text for text in dict.fromkeys(texts) if text not in VECTORS]
    VECTORS.update(zip(new, embed(embedder, new, Role.DOCUMENT), strict=True))
    return [VECTORS[text] for text in texts]


def cited_sentences(draft: GeneratedText, matches: Sequence[Match]) -> list[tuple[int, str]]:
    """Each sentence with its citation's number. Fails unless each paragraph cites the document of its title,
    and each sentence has the words that stand at its place in that document."""
    citations = cite(matches)
    for paragraph in draft.text.removeprefix(f"{INDIRECT}\n\n").split("\n\n"):
        parts = re.fullmatch(r'"(.+?)"(?: \(([\d-]{10})\))?(?:: | says otherwise: ")(.+) \[(\d)\]', paragraph)
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


def sentences(embedder: Embedder, question: str, *matches: Match) -> list[tuple[int, str]]:
    """The sentences of the answer, each with its citation's number."""
    return cited_sentences(answer(embedder, question, *matches), matches)


@pytest.fixture(scope="module")
def corpus(embedder: Embedder) -> list[Match]:
    """Every chunk of the demo's documents."""
    matches: list[Match] = []
    for file, user in demo_files():
        document = file.document
        text, name = clean(document.text), f"{user} {document.external_id}"
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
    embedder: Embedder, corpus: list[Match]
):
    for question in QUESTIONS:
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


OFF, HUNDRED = "At how many degrees does the kettle switch off?", "The kettle switches off at 100 degrees."
LASTS, YEARS = "How long does the battery of the logger last?", "The battery of the logger lasts five years."


DOWN, OWNED = "The billing service was down on Monday.", "The billing service is owned by the Payments team."
RETRIES = "It was down because webhook retries filled the queue of the billing service."
STOPPED = "The kettle stopped on Monday at noon."
# Its score is about half of the best, which alone would not be enough.
FUSE = "The reason was a fuse in the kitchen that had blown."
DESK, SUNDAYS = "Nadia Benali opens the service desk at 07:00.", "On Sundays it closes at 17:00."
FREE, ELECTRIC = "Employees park free of charge.", "Beside the gate, spaces are meant for electric cars only."
HEAD, SUCCEEDS = "Nadia Benali takes over as head of the desk.", "She succeeds Paul Anquetil."
LIABILITY = "Rule 6 limits the liability to 750,000 euros."
MEASURED = "These lifetimes of the battery were measured at +4 °C."
START = "A new colleague goes through onboarding like this:"
STEPS = ["1. Step with a badge.", "2. Step with a desk.", "3. Step with a rule."]
USED = "The depots used this much electricity in 2025:"
LOCK, RADIO = "A lock is set back to firmware 2.6 in the workshop.", "This is not possible over the network."
OLD_TAMSIN = "The Old Tamsin has six cabins and a bar."
PERMITS = "The harbour office issues permits for the pier."
PROCESSORS = "| Mainwerk | Hosting |\n| Fjordpost | E-mail |\n| Signalhuset | Text messages |"
FERRY = (
    "The ferry leaves the pier at nine. The crossing takes forty minutes. Dogs travel free of charge. "
    "The captain greets all guests. A ticket costs 12 euros."
)
CROSSING = ["The crossing takes forty minutes.", "A ticket costs 12 euros."]
PUMPS = "# Pump P-210\nMotor power: 5.5 kW\nWeight: 96 kg\n\n# Pump P-310\nMotor power: 9 kW\nWeight: 120 kg"
# By promise: a question, a document, and the sentences of it that are quoted.
QUOTED: dict[str, tuple[str, str, list[str]]] = {
    "a heading is no answer": (LASTS, f"## The battery of the logger lasts how long\n{YEARS}", [YEARS]),
    "a question is no answer": (LASTS, f"{LASTS}\nAnna: So {LASTS[:-1]}, then?\n{YEARS}", [YEARS]),
    "a full-width question": (LASTS, f"{LASTS[:-1]}？\n{YEARS}", [YEARS]),
    "a question is no label": (LASTS, f"## {LASTS}\n{MEASURED}", [MEASURED]),
    "a repeated sentence is used once": (OFF, f"{HUNDRED} {HUNDRED}\n{HUNDRED}", [HUNDRED]),
    "an item without words is left out": (OFF, f"- the\n- a\n- {HUNDRED[:-1]}", [HUNDRED]),
    "the reason after a sentence": (
        "Why did the kettle stop?", f"{STOPPED} {FUSE} Lunch costs five euros a person.", [STOPPED, FUSE]
    ),
    "both parts of a question": (
        "Why was the billing service down and who owns the billing service?", f"{DOWN} {RETRIES} {OWNED}",
        [DOWN, RETRIES, OWNED],
    ),
    "two facts": ("How long does the crossing take, and what does a ticket cost?", FERRY, CROSSING),
    "in its order": ("What does a ticket cost and how long does the crossing take?", FERRY, CROSSING),
    "its heading": ("What is the motor power of pump P-310?", PUMPS, ["Pump P-310: Motor power: 9 kW."]),
    "what a limit limits": (
        "Do employees park free of charge?", f"{FREE} {ELECTRIC} It rains.", [FREE, ELECTRIC]
    ),
    "the next sentence that refers to it": (
        "When does the service desk open?", f"{DESK} {SUNDAYS} It rains.", [DESK, SUNDAYS]
    ),
    "the next sentence that begins with a pronoun and names another": (
        "Whom does Nadia Benali succeed as head of the desk?", f"{HEAD} {SUCCEEDS} Lunch is at noon.",
        [HEAD, SUCCEEDS],
    ),
    "not for a part of one word": (
        "Which rule limits the liability, and to what amount?",
        f"{LIABILITY} Amounts of the deposit are paid to the office.", [LIABILITY],
    ),
    "a denial after the best sentence": (
        "Can a lock be set back to firmware 2.6 by radio?", f"{LOCK} {RADIO}", [LOCK, RADIO]
    ),
    "a whole list in order": (
        "What are the steps of onboarding?",
        "\n".join([START, "", *STEPS, "", "Lunch is at noon for all colleagues."]),
        [f"{START} {STEPS[0]}", *STEPS[1:]],
    ),
    "an item with the line that introduces its list": (
        "How much electricity did Mallow use in 2025?",
        f"{USED}\n\n- Cork: 2.1 GWh\n- Mallow: 0.9 GWh\n\nMallow has a new roof.",
        [f"{USED} Mallow: 0.9 GWh."],
    ),
    "all rows of a table": (
        "Which sub-processors does the service have?",
        f"## Sub-processors\n\n| Name | Task |\n|---|---|\n{PROCESSORS}",
        ["Sub-processors: Mainwerk: Task Hosting.", "Fjordpost: Task E-mail.",
         "Signalhuset: Task Text messages."],
    ),
    "no sentence about another name": (
        "How many cabins has the Old Tamsin?", f"{OLD_TAMSIN} The New Tamsin has nine cabins and a bar.",
        [OLD_TAMSIN],
    ),
    "no sentence with another identifier of the same form": (
        "What does code E-55 of the logger mean?",
        "Code E-55 means a reminder. It rains. Code E-17 of the logger means a stop.",
        ["Code E-55 means a reminder."],
    ),
    "no sentence without another word of the question": (
        "Who issues permits for the pier?", f"{PERMITS} It rains. Permits for the pier are free.", [PERMITS]
    ),
}  # fmt: skip


def test_the_sentences_that_answer_are_quoted_alone(embedder: Embedder):
    for promise, (question, text, quoted) in QUOTED.items():
        # A title counts: the sentences that refer to the service desk need its word.
        spoken = sentences(embedder, question, match(text, "Desk"))
        assert spoken == [(1, sentence) for sentence in quoted], promise


def test_an_excerpt_of_the_best_passage_is_shown_where_no_sentence_answers_directly(embedder: Embedder):
    """Nothing tells when the museum is open."""
    question = "How long does the crossing take, and when is the museum open?"
    draft = answer(embedder, question, match(FERRY, "Timetable"))
    assert draft.text == f'{INDIRECT}\n\n"Timetable": {FERRY} [1]'


NO_VALUES = {
    "How much is a ticket for the dinner on Friday night?": "Friday night is the dinner with a ticket.",
    "How many members does the chess club have?": "The chess club is open to all members of the town.",
    "When does the new bridge open?": "The new bridge opens to bicycles as well.",
    "How long is the guarantee of the pump?": "The guarantee of the pump is in the leaflet.",
    "Wie viele Besucher hatte das Museum?": "Das Museum freut sich über alle Besucher.",
    "Wie hoch ist die Gebühr für den Parkplatz?": "Die Gebühr für den Parkplatz zahlt der Verein.",
    "Wann schließt das Freibad?": "Das Freibad schließt bei Gewitter.",
    "Combien coûte la carte de la piscine ?": "La carte de la piscine coûte moins aux élèves.",
    "¿Cuánto cuesta la entrada del museo?": "La entrada del museo cuesta menos a los vecinos.",
    "Hoeveel kost het kaartje van de veerboot?": "Het kaartje van de veerboot kost minder voor leden.",
}


def test_an_answer_without_the_number_or_time_that_the_question_asks_for_is_indirect(embedder: Embedder):
    for question, text in NO_VALUES.items():
        assert answer(embedder, question, match(text, "Notes")).is_indirect
        with_value = text.replace(".", ", 5 euros, 3 March.")
        assert not answer(embedder, question, match(with_value, "Notes")).is_indirect


def test_excerpts_of_three_passages_are_shown_the_first_of_the_search_among_them(embedder: Embedder):
    texts = {
        "Coffee": "Guests find coffee at noon.", "Tower": "Guests sleep in the red tower.",
        "Lockers": "Guests leave lockers to the porter.", "Parcels": "Guests collect parcels in the yard.",
    }  # fmt: skip
    matches = [match(text, name) for name, text in texts.items()]
    for ranked in (matches, matches[::-1]):
        text = answer(embedder, "Which guests may bring their dog and a bicycle?", *ranked).text
        assert text.startswith(INDIRECT)
        shown = [name for name, content in texts.items() if content in text]
        assert len(shown) == 3
        assert ranked[0].title in shown


def test_an_excerpt_repeats_no_sentence(embedder: Embedder):
    """Of two passages of a document that quote the same mail."""
    wait = "Guests wait in the blue hall."
    first, second = f"Coffee is free. {wait}", f"The hall is cold. {wait}"
    later = replace(match(second), chunk_id="later", span=(100, 100 + len(second)))
    text = answer(embedder, "Which guests may bring their dog and a bicycle?", later, match(first)).text
    assert text.startswith(INDIRECT)
    assert text.count(wait) == 1


def test_an_excerpt_brings_no_conflict_and_no_other_version(embedder: Embedder):
    """The question asks for neither."""
    question = "Which guests may wait with a dog, a cat and a bicycle a third time?"
    price = "The small room costs {} euros the second time."
    new = match(f"Guests wait in the blue hall. {price.format(55)}", "New")
    draft = answer(embedder, question, new, match(price.format(45), "Old"))
    assert draft.text == f'{INDIRECT}\n\n"New": {new.text} [1]'
    assert not draft.has_conflict
    assert replaced_version(question, draft) is None


def test_the_length_of_an_excerpt_is_limited(embedder: Embedder):
    """The later sentences come first, and a best one that is too long stands alone."""
    fillers = [
        f"Locker {number} of the hall is emptied by the porter once in a month." for number in range(20)
    ]
    best = "Parcels are put in the yard."
    text = " ".join((*fillers[:10], best, *fillers[10:]))
    shown = [text for _, text in sentences(embedder, "Which company sends parcels abroad?", match(text))]
    assert best in shown
    assert sum(map(len, shown)) <= EXCERPT_CHARACTERS
    at = shown.index(best)
    assert shown == [*fillers[10 - at : 10], best, *fillers[10 : 10 + len(shown) - at - 1]]
    assert len(shown) - at - 1 - at in (0, 1)


GATEWAY = "The outage of the gateway began at 02:14.", "The reason was an expired certificate of the gateway."
KETTLE = "The kettle switches off by a magnet.", "The kettle stops after 4 minutes."
DEVICE = "Resetting a device takes a minute. Resetting a device never deletes its measurements."
SMOKE = "Smoke came out of the cabinet.\n\n## Cause\nWater had entered a battery of the cabinet."
# A question, its documents, and the place of a sentence in the answer.
PLACED: list[tuple[str, Sequence[str], int, tuple[int, str]]] = [
    ("Does resetting a device delete its measurements?", [DEVICE], 0,
     (1, "Resetting a device never deletes its measurements.")),
    ("What caused the outage of the gateway?", GATEWAY, 0, (2, GATEWAY[1])),
    ("How long until the kettle switches off?", KETTLE, 0, (2, KETTLE[1])),
    ("After how many minutes does the kettle stop?", KETTLE, 0, (2, KETTLE[1])),
    ("How does the kettle switch off?", KETTLE, 0, (1, KETTLE[0])),
    ("What was the reason for the smoke in the cabinet?", [SMOKE], -1,
     (1, "Water had entered a battery of the cabinet.")),
]  # fmt: skip


def test_a_title_is_no_answer(embedder: Embedder):
    text = "Trusted User Bylaws\n\nThe bylaws hold for each trusted user of the house."
    bylaws = match(text, "Trusted User Bylaws")
    (first, *_) = sentences(embedder, "What do the trusted user bylaws hold for?", bylaws)
    assert first == (1, "The bylaws hold for each trusted user of the house.")


def test_the_first_sentence_that_is_the_title_of_a_text_without_one_answers_directly(embedder: Embedder):
    """The answer does not repeat it as title, but keeps another title."""
    question = "At how many degrees does the kettle switch off?"
    text = "The kettle switches off at 100 degrees. It holds 1.7 litres."
    sentence, others = text[:39], ("The kettle switches", "The ket ...", "The kettle switches off at 100.")
    for title in (text, sentence, f"{text[:47]} ...", f"{text[:30]} ...", text[:50], *others):
        draft = answer(embedder, question, match(text, title, occurred_at=datetime(2026, 1, 1, tzinfo=UTC)))
        assert not draft.is_indirect, title
        assert (draft.text == f"(2026-01-01): {sentence} [1]") is (title not in others), title
    assert answer(embedder, question, match(text, text)).text == f"{sentence} [1]"


def test_the_form_of_a_question_decides_the_order(embedder: Embedder):
    for question, texts, place, expected in PLACED:
        matches = [match(text, f"Document {number}") for number, text in enumerate(texts)]
        assert sentences(embedder, question, *matches)[place] == expected


def test_a_list_under_the_heading_that_the_question_repeats_is_quoted_whole(embedder: Embedder):
    items = ["- alcohol", "- fines and parking tickets", "- hotel films"]
    text = "\n".join(["## Not paid", "", *items, "", "## Taxis", "", "Taxis are paid after 22:00."])
    expenses = match(text, "Travel expenses")
    for question in ("What is not paid as travel expenses?", "travel expenses not paid"):
        draft = answer(embedder, question, expenses)
        assert draft.text.endswith("Not paid: alcohol. fines and parking tickets. hotel films. [1]")
    assert "alcohol" not in answer(embedder, "When are taxis paid?", expenses).text


def test_a_sentence_in_two_overlapping_chunks_or_two_documents_is_used_once(embedder: Embedder):
    text = f"The kettle holds 1.7 litres of water. {HUNDRED}"
    start = text.index(HUNDRED)
    overlapping = match(text, "Kettle"), match(text[start:], "Kettle", start=start)
    assert answer(embedder, OFF, *overlapping).text.count(HUNDRED) == 1
    assert sentences(embedder, OFF, match(HUNDRED, "Kettle"), match(HUNDRED, "Copy")) == [(1, HUNDRED)]


def test_sentences_that_differ_in_a_number_are_both_used(embedder: Embedder):
    cases = [
        ("How much warranty has a logger of each year?", "A logger of {} months of warranty.",
         "2025 has 24", "2026 has 36"),
        ("Which logger accepts 6 °C in the tank?", "The {} logger accepts 6 °C in the tank.",
         "FL-200", "FL-300"),
    ]  # fmt: skip
    for question, sentence, first, second in cases:
        one, other = sentence.format(first), sentence.format(second)
        spoken = sentences(embedder, question, match(one, "Old terms"), match(other, "New terms"))
        assert {*spoken} == {(1, one), (2, other)}


def test_an_indirect_answer_is_introduced_as_such(embedder: Embedder):
    matches = (match("The kettle holds 1.7 litres of water. It weighs 900 grams.", "Kettle"),)
    draft = answer(embedder, "Who sold the first kettle in Norway?", *matches)
    assert draft.text.startswith(f"{INDIRECT}\n\n")
    assert cited_sentences(draft, matches)
    questions: dict[str, str] = {
        "de": "Wer hat den ersten Kessel in Norwegen verkauft?",
        "fr": "Qui a vendu la première bouilloire en Norvège ?",
        "es": "¿Quién vendió el primer hervidor en Noruega?",
        "nl": "Wie heeft de eerste waterkoker in Noorwegen verkocht?",
    }
    for language, question in questions.items():
        draft = answer(embedder, question, replace(matches[0], lang="en"))
        assert draft.text.startswith(INDIRECT_BY_LANGUAGE[language])
        draft = answer(embedder, question, match("## Kettle", lang="en"))
        assert draft.text.startswith(INDIRECT_BY_LANGUAGE[language])


def test_without_a_suitable_sentence_the_best_passage_is_shown_as_indirect(embedder: Embedder):
    for text in ("## Kettle", "Is it hot?\nWho knows?", "|---|---|", "Yes.\nNo.", "How to heat the kettle:"):
        matches = (match(text, "Kettle"), match("## Other", "Other"))
        draft = answer(embedder, "How hot is the kettle?", *matches)
        assert draft == GeneratedText(f'{INDIRECT}\n\n"Kettle": {text} [1]', MODEL, is_indirect=True)


def test_without_a_word_of_the_question_there_is_no_answer(embedder: Embedder):
    for text in ("The kettle holds 1.7 litres of water. It weighs 900 grams.", "## Kettle"):
        draft = answer(embedder, "Who won the football world cup?", match(text, "Kettle"))
        assert draft == GeneratedText("", MODEL, is_abstention=True)


def test_words_of_another_language_or_script_do_not_prevent_an_answer(embedder: Embedder):
    """Words in common would not count: the embeddings of such a model compare meanings."""
    cases = {
        "language": ("Wie heiß wird das Wasser?", match(HUNDRED, "Kettle", lang="en")),
        "script": ("水壶在多少度关闭？", match("这个水壶在一百度的时候会自动关闭。", "水壶", lang="zh")),
        "no words": ("What is it?", match(HUNDRED, "Kettle")),
    }
    for case, (question, passage) in cases.items():
        assert passage.text in answer(embedder, question, passage).text, case


def test_the_number_of_sentences_is_limited(embedder: Embedder):
    text = " ".join(f"Kettle number {number} switches off at {number + 90} degrees." for number in range(9))
    matches = (match(text, "Kettles"), match(text.replace("Kettle", "Boiler"), "Boilers"))
    spoken = sentences(embedder, "At how many degrees do the kettles switch off?", *matches)
    assert len(spoken) == MAX_SENTENCES == 2


def test_a_document_that_is_not_cited_is_not_quoted(embedder: Embedder):
    others = [match(f"The toaster has {number} degrees of heat.", str(number)) for number in range(5)]
    spoken = sentences(embedder, OFF, *others, match(HUNDRED, "Sixth"))
    assert {number for number, _ in spoken} <= {1, 2, 3, 4, 5}
    assert HUNDRED not in " ".join(sentence for _, sentence in spoken)


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


def test_the_rows_with_the_question_s_words_are_quoted_alone(embedder: Embedder):
    cases = [
        ("What is the night crossing fare for a child?", ["Child 4 to 14"]),
        ("What do children pay in high season?", ["Child 4 to 14"]),
        ("How much do camper vans cost in high season?", ["Camper van up to 8 m"]),
        ("Compare the fares of an adult ticket and a child ticket.", ["Adult", "Child 4 to 14"]),
    ]
    for question, names in cases:
        spoken = sentences(embedder, question, match(FARES, "Fares"))
        assert [sentence.partition(":")[0] for _, sentence in spoken] == names


def test_all_rows_are_quoted_where_the_question_compares_them(embedder: Embedder):
    rows = (
        "| Depot | Saturday | Sunday |\n| --- | --- | --- |\n| Leuven depot | 08:00 to 16:00 | closed |\n"
        "| Cork depot | 09:00 to 13:00 | closed |\n| Gdynia | 07:00 to 20:00 | 10:00 to 14:00 |"
    )
    hours = match(f"{rows}\n\nA depot manager may change the hours before a holiday.", "Opening hours")
    for question in ("Which depots are open on Sunday?", "Which depot has the longest hours on Saturday?"):
        spoken = sentences(embedder, question, hours)
        names = [sentence.partition(":")[0] for _, sentence in spoken]
        assert names == ["Leuven depot", "Cork depot", "Gdynia"]


def test_a_heading_is_shown_for_each_document(embedder: Embedder):
    matches = tuple(
        match(f"## Opening hours\n\n| Day | Hours |\n|---|---|\n| Monday | {hours} |", place)
        for place, hours in (("Oslo", "9 to 17"), ("Rome", "10 to 18"))
    )
    draft = answer(embedder, "What are the opening hours on Monday?", *matches)
    assert draft.text.count("Opening hours: Monday: Hours ") == 2


def test_a_long_list_is_cut(embedder: Embedder):
    items = "\n".join(f"- Onboarding step with tool number {number}" for number in range(40))
    draft = answer(embedder, "List the steps of onboarding", match(items, "Start"))
    assert len(draft.sentences) == MAX_ITEMS


def test_an_older_version_is_quoted_only_if_the_question_names_it(embedder: Embedder):
    old = match("The probe HP-8 costs 32 euros.", "Prices 2025", occurred_at=datetime(2025, 1, 1, tzinfo=UTC))
    prices = "Loggers cost 129 euros. The price of probe HP-8 is 34 euros without a cable."
    new = match(prices, "Prices 2026", occurred_at=datetime(2026, 1, 1, tzinfo=UTC))
    for question, number in (("What does the probe HP-8 cost?", 2), ("What was its price in 2025?", 1)):
        assert answer(embedder, question, old, new).sentences[0].number == number
    assert "32" not in answer(embedder, "What does the probe HP-8 cost?", old, new).text


def test_documents_in_the_language_of_the_question_come_first(embedder: Embedder):
    english = match("The leave is 30 days a year.", "Leave", lang="en")
    german = match("Der Urlaub (leave) beträgt 30 Tage im Jahr.", "Urlaub", lang="de")
    question = "Wie viele Tage im Jahr beträgt der Urlaub, leave of 30 days a year?"
    assert answer(embedder, question, english, german).sentences[0].number == 2


def test_the_newest_value_leads_and_the_older_one_is_noted(embedder: Embedder):
    old, new = (
        match(
            f"The small room costs {price} euros a day.",
            f"Prices {year}",
            occurred_at=datetime(year, 3, 1, tzinfo=UTC),
        )
        for year, price in ((2025, 45), (2026, 55))
    )
    cases: list[tuple[str, str, str]] = [
        ("en", "What does the small room cost a day?", "says otherwise"),
        ("de", "Was kostet der small room pro day in euros?", "sagt etwas anderes"),
    ]
    for language, question, otherwise in cases:
        draft = answer(embedder, question, old, new)
        assert draft.text.removeprefix(f"{INDIRECT_BY_LANGUAGE[language]}\n\n") == (
            f'"Prices 2026" (2026-03-01): {new.text} [2]\n\n'
            f'"Prices 2025" (2025-03-01) {otherwise}: "{old.text}" [1]'
        )
        assert [sentence.number for sentence in draft.sentences] == [2, 1]


def test_a_word_of_the_question_may_be_in_a_compound(embedder: Embedder):
    rules = match("Mitarbeitende erhalten 30 Tage Jahresurlaub.", "Regeln", lang="de")
    assert "Jahresurlaub" in answer(embedder, "Wie lange habe ich Urlaub?", rules).text


def test_a_follow_up_is_answered_by_itself(embedder: Embedder):
    """With the words of the question that it continues, but not with that question's answer."""
    kettle = f"{HUNDRED} It holds 1.7 litres of water."
    offices = "The office in Berlin opens at 8:00. The office in Paris opens at 9:00."
    codes = "Error code E-55 means that the pump is blocked. Error code E-17 means that the filter is full."
    kettles = "Kettle 3 becomes 63 degrees hot. Kettle 4 becomes 71 degrees hot."
    prices = "The prices for 2023 are 40 euros. The prices for 2024 are 45 euros."
    cases = [
        (codes, "What does error code E-55 mean?", "And E-17?", "the filter"),
        (kettles, "How hot does Kettle 3 become?", "And Kettle 4?", "71 degrees"),
        (prices, "What were the prices for 2023?", "And for 2024?", "45 euros"),
        (kettle, OFF, "How much water does it hold?", "1.7 litres"),
        (offices, "When does the office in Berlin open?", "And in Paris?", "9:00"),
    ]
    for text, previous, question, expected in cases:
        passage = match(text)
        draft = extract(question, [passage], cite([passage]), partial(embed, embedder), None, previous)
        (sentence,) = draft.sentences
        assert expected in sentence.text


def test_a_sentence_answers_directly_from_a_higher_score_than_a_row_and_a_reason():
    def is_direct(text: str, question: str = "Which valve fills the northern tank?") -> bool:
        passages = [match(text, "Note")]
        draft = extract(
            question, passages, cite(passages), lambda texts, _: [[1.0], *[[0.5]] * len(texts[1:])]
        )
        return not draft.is_indirect

    assert not is_direct("The valve fills the tank.")
    assert not is_direct("- The valve fills the tank.")
    assert is_direct("| Valve | It fills |\n|---|---|\n| Valve V1 | the tank |")
    assert is_direct("The valve fills the tank because it rains.", "Why does it fill the northern tank?")
