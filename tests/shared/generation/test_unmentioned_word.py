"""The noun of a question that the sentences of an extracted answer do not mention."""

from dataclasses import replace

import pytest

from shared.generation.cited_documents import cite
from shared.generation.extractive.answer import extract
from shared.generation.refusal_texts import not_mentioned
from shared.generation.unmentioned_word import replaced_version, unmentioned_note, unmentioned_word
from shared.types import ExtractedSentence, GeneratedText, Match
from tests.shared.examples import match

WAVES = "The wave limit of the ferry is two metres."
ABOVE = "The wave limit of the ferry is two metres. Above two metres the ferry stays in the harbour."
CARS, BUSES = "The fee of parking cars is 5 euros.", "The fee of parking a bus is 9 euros."
PARKING = "What is the fee of parking for buses?"
WELLEN = "Das Limit für Wellen ist zwei Meter hoch."
CAPTAIN = "The limit of the ferry is two metres, and the captain decides on it with the crew."
# The question, the document's text, and the word.
QUESTIONS = {
    "a neighbouring fact": ("What is the wind limit of the ferry?", WAVES, "wind"),
    "a person": ("Who is the captain of the ferry?", WAVES, "captain"),
    "behind a preposition": (PARKING, CARS, "buses"),
    "the form of one that is mentioned": (PARKING, BUSES, None),
    "another form": ("Which limits of waves apply to ferries?", WAVES, None),
    "part of a compound": ("Wie hoch ist das Limit für Wellen?", "Das Wellenlimit ist zwei Meter.", None),
    "in German": ("Wie hoch ist das Limit für den Wind?", WELLEN, "Wind"),
    "in the heading": ("What is the wave limit of the catamaran?", f"# Catamaran\n{WAVES}", None),
    "in the title": ("What is the wave limit for winter?", f"{WAVES}", None),
    "a kind of value": ("What is the date of the ferry's wave limit?", WAVES, None),
    "a kind of value in German": ("Wie ist der Name für das Limit der Wellen?", WELLEN, None),
    "a verb": ("Who announces the wave limit of the ferry?", WAVES, None),
    "a verb behind what": ("What is the wave limit of the ferry and what happens above it?", ABOVE, None),
    "a verb behind which": ("Which applies to the ferry and its waves?", WAVES, None),
    "a verb behind what, before a word that is mentioned": ("What sets ferry wave limits?", WAVES, None),
    "a verb behind who, before a word that is mentioned": ("Who sets ferry wave limits?", WAVES, None),
    "a noun behind what, before a word that is mentioned": ("What wind limit has the ferry?", WAVES, "wind"),
    "a noun behind which, before its verb": ("Which captain has the ferry with waves?", WAVES, "captain"),
    "a preposition": ("What is the limit of waves from above for the ferry?", WAVES, None),
    "a verb in German": ("Welche gilt ab wann als Limit für die Wellen?", WELLEN, None),
    "a verb in Spanish": ("¿Qué pasa con el barco y las olas?", "El barco tiene las olas.", None),
    "a noun in Spanish": ("¿Qué empresa tiene el barco de las olas?", "El barco tiene las olas.", "empresa"),
    "a verb in Portuguese": ("Que acontece com o barco nas ondas?", "O barco passa nas ondas.", None),
    "a verb in Italian": ("Quale vale per il traghetto e le onde?", "Il traghetto e le onde.", None),
    "a verb in Dutch": ("Welke geldt voor de boot en de golven?", "De boot vaart over golven.", None),
    "a verb behind am": ("I am starting a ferry: what is the wave limit?", WAVES, None),
    "another wording": ("At which height of the sea do boats stay in the harbour?", WAVES, None),
    "another language": ("Wie hoch darf die Welle für die Fähre mit Wind sein?", CAPTAIN, None),
    "a script without spaces": ("フェリーの風の制限は何ですか", WAVES, None),
}  # fmt: skip


def extracted(question: str, passage: Match) -> GeneratedText:
    return extract(question, [passage], cite([passage]), lambda texts, _: [[0.1] for _ in texts])


@pytest.mark.parametrize("promise", QUESTIONS)
def test_a_noun_that_the_sentences_lack_is_named(promise: str):
    question, text, word = QUESTIONS[promise]
    passage = match(text, "Winter timetable")
    draft = extracted(question, passage)
    assert draft.sentences or word is None
    assert unmentioned_word(question, draft, [passage]) == word


def test_of_two_nouns_the_one_in_fewer_passages_is_named():
    question = "What is the wave limit of the ferry for the wind in the harbour?"
    passage, other = match(WAVES, "Timetable"), match("The harbour is open.", "Port")
    assert unmentioned_word(question, extracted(question, passage), [passage, other]) == "wind"


def test_a_model_s_answer_has_no_quoted_sentences():
    assert unmentioned_word("What is the wind limit of the ferry?", GeneratedText(WAVES, "m"), []) is None


@pytest.mark.parametrize(
    ("question", "text", "word"),
    [
        ("What did the ferry cost in 2024?", "In 2023 the ferry cost 900 euros.", "2024"),
        ("What did the ferry cost in 2024?", "In 2023 the ferry cost 900 euros, in 2024 it cost 950.", None),
        ("What is new in version 2.9.4?", "Version 2.9.13 has a new timetable of the ferry.", "2.9.4"),
        ("What did the ferry cost in 2024?", "The ferry cost 900 euros.", None),
        ("What did it cost in the third quarter?", "In the second quarter it cost 9 euros.", "third"),
        ("How much was it in the fourth quarter?", "In the first quarter the ferry cost 9 euros.", "fourth"),
        ("What did it cost in the first quarter?", "In the first and second quarter it cost 9 euros.", None),
        ("What did the ferry cost in the third quarter?", "In 2023 the ferry cost 9 euros.", None),
        ("Wie teuer war die Fähre im ersten Quartal?", "Ein erstes Quartal der Fähre kostete 9 Euro.", None),
        ("Wie teuer war sie im ersten Quartal?", "Im dritten Quartal kostete die Fähre 9 Euro.", "ersten"),
        ("What did it cost in the third fiscal quarter?", "In the fourth quarter it cost 9 euros.", "third"),
        ("Who was the first on the ferry?", "Ann on the ferry is second to none.", None),
        # Units of time, and an ordinal of another thing.
        ("What must I do first when the alarm sounds?", "At the alarm leave within 60 seconds.", None),
        ("How long is the first delay of the alarm?", "The alarm has a 60 second delay.", None),
        ("How many seconds does the retry wait?", "The first retry waits 30 s.", None),
        ("What is on the third floor of the house?", "The house has a second door.", None),
        ("¿Qué hay en el segundo piso de la casa?", "El cuarto de la casa tiene ventanas.", None),
        ("Was the ferry replaced in 2018?", "The ferry was replaced in 2019.", None),
        ("When was the ferry of 2018 replaced?", "The ferry was replaced in 2019.", None),
    ],
)
def test_another_year_or_version_in_the_place_of_the_question_s_is_named(
    question: str, text: str, word: str | None
):
    assert replaced_version(question, extracted(question, match(text, "Timetable"))) == word
    assert replaced_version(question, extracted(question, match(text, f"Timetable {word}"))) is None


def test_a_version_that_only_the_excerpt_mentions_is_not_called_unmentioned():
    question, texts = "What did the ferry cost in 2024?", ("In 2023 the ferry cost 9.", "In 2024 it rained.")
    cost, rain = (ExtractedSentence(text, 1, match(text), 0, len(text), frozenset()) for text in texts)
    assert replaced_version(question, GeneratedText("", "m", sentences=(cost,))) == "2024"
    shown = GeneratedText("", "m", sentences=(cost, replace(rain, is_excerpt=True)))
    assert replaced_version(question, shown) is None


# The passage is on the subject, and lacks the noun.
UNMENTIONED = [
    ("How many employees did Kestrel have in 2025?", "Kestrel made 62 euros in 2025.", "employees"),
    ("What was Corvane's marketing budget in 2025?", "Corvane sold 9 licences in 2025.", "marketing"),
    ("Which insurance must Norwick maintain?", "Norwick is the supplier of the cranes.", "insurance"),
    ("Which carrier brings the rollers of the order?", "The rollers are of steel and red.", "carrier"),
    ("Welche versicherung braucht der Lieferant?", "Der Lieferant sitzt in Hull.", "versicherung"),
    ("Quel transporteur livre les rouleaux ?", "Les rouleaux sont en acier rouge.", "transporteur"),
    ("Quelle garantie couvre la toiture ?", "La toiture est en zinc et en bois.", "garantie"),
    ("¿Qué empresa recoge la basura?", "La basura se recoge los lunes y martes.", "empresa"),
    ("¿Cuántos empleados trabajan en la fábrica?", "La fábrica es de 1925 y muy grande.", "empleados"),
    ("Welke vervoerder levert de rollen?", "De rollen zijn van rood staal en zwaar.", "vervoerder"),
]


@pytest.mark.parametrize(("question", "text", "word"), UNMENTIONED)
def test_a_note_names_the_noun_that_no_passage_mentions(question: str, text: str, word: str):
    """Before an indirect answer, and not if another passage mentions the noun."""
    passage, other = match(text, "Notes"), match(f"A {word} is in the annex.", "Annex")
    draft = extract(question, [passage], cite([passage]), lambda texts, _: [[0.0] for _ in texts])
    indirect = replace(draft, is_indirect=True)
    assert unmentioned_note(question, indirect, [passage]) == not_mentioned(question, [word])
    assert unmentioned_note(question, indirect, [passage, other]) == ""
    assert unmentioned_note(question, replace(draft, is_indirect=False), [passage]) == ""
