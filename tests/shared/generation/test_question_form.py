"""What a question asks for, by its words."""

import pytest

from shared.generation.question_form import MAX_PARTS, QuestionForm, has_word


def test_the_parts_of_a_question_are_counted_and_bounded():
    assert QuestionForm.of("What is the fee, and where do I pay?").parts == 2
    assert QuestionForm.of("and what " * 1000).parts == MAX_PARTS


@pytest.mark.parametrize(
    "question",
    [
        "Which clause limits the liability, and to what amount?",
        "Who signed the lease, and on which date?",
        "What is the fee and for whom is it waived?",
        "Bis zu welchem Betrag gilt die Freigabe und auf welche Kostenstelle geht sie?",
        "Wann beginnt der Kurs und in welchem Raum findet er statt?",
        "Qui dois-je appeler, et à quel numéro ?",
        "Qui suit le dossier, et pour quelle date ?",
        "¿Cuál era el crédito y en cuánto quedó?",
        "¿Quién firma el acta y en qué fecha?",
        "Wie leidt het overleg en in welke zaal is het?",
    ],
)
def test_the_second_part_may_begin_with_a_preposition(question: str):
    assert QuestionForm.of(question).parts == 2
    assert QuestionForm.of("Who runs the shop and the bar of which I read?").parts == 1


def test_a_question_word_may_be_behind_a_preposition():
    assert QuestionForm.of("Für welche Maschinen brauche ich eine Einweisung?").several
    assert QuestionForm.of("Until when is the desk open?").value


def test_a_word_counts_by_its_meaning_in_the_language_of_the_question():
    asks_what = QuestionForm.of("Was kostet die Miete?")
    assert asks_what.something
    assert not asks_what.yes_or_no
    assert not QuestionForm.of("Was kostet Miete?").yes_or_no
    assert QuestionForm.of("Was Smith promoted?").yes_or_no
    assert QuestionForm.of("Was the budget approved?").yes_or_no
    assert QuestionForm.of("Who wrote the plan and was it approved?").parts == 1
    assert not QuestionForm.of("Who is the mayor of the town?").superlative
    assert QuestionForm.of("¿Cuál es el mayor de los depósitos?").superlative
    assert QuestionForm.of("Welche Stadt ist die größte?").superlative
    assert not QuestionForm.of("¿Y el precio de la entrada?").yes_or_no


def test_an_english_word_that_dutch_has_too_is_english():
    assert QuestionForm.of("cheapest van rental").superlative
    assert QuestionForm.of("List van models").several


def test_dutch_questions_are_read():
    assert QuestionForm.of("Wanneer is de vergadering van de raad?").value
    assert QuestionForm.of("Is het gebouw op zondag open?").yes_or_no
    assert QuestionForm.of("Waarom is de aanvraag afgewezen?").reason
    assert QuestionForm.of("Wat kost het en hoe betaal ik?").parts == 2


def test_a_word_of_a_sentence_counts_by_the_sentence_s_language():
    aim = "Le but du projet est la mobilité."
    assert not has_word(aim, "limits", "fr")
    assert has_word("It opens daily but not in May.", "limits", "en-GB")
    assert has_word(aim, "limits", None)
    # Frisian and Estonian, not French and Spanish.
    assert has_word("It opens daily but not in May.", "limits", "fry")
    assert has_word("It opens daily but not in May.", "limits", "est")
    assert not has_word("We want to thank the team.", "reason", None)
