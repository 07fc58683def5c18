"""What a question asks for, by its words."""

from shared.generation.question_form import MAX_PARTS, QuestionForm


def test_the_parts_of_a_question_are_counted_and_bounded():
    assert QuestionForm.of("What is the fee, and where do I pay?").parts == 2
    assert QuestionForm.of("and what " * 1000).parts == MAX_PARTS


def test_a_question_word_may_be_behind_a_preposition():
    assert QuestionForm.of("Für welche Maschinen brauche ich eine Einweisung?").several
    assert QuestionForm.of("Until when is the desk open?").value
