"""Which questions depend on an earlier one: a set of pairs in four languages, and single cases.

`follow_ups.tsv` was written before the rule, and is not for tuning it. Each row is a question, the one before
it, and whether it depends on that.
"""

import csv
import time
from collections import Counter
from pathlib import Path

from shared.answering.platform_chat.follow_up_rewriting.detection import GRAMMARS, is_follow_up

# Each with the least share that must be right, and how many pairs of a language it has. The second set was
# written after the rule and measured once.
PAIRS = {"follow_ups.tsv": (0.95, 30), "follow_ups_unseen.tsv": (0.9, 10)}


def test_most_labelled_pairs_are_classified_correctly():
    for name, (least, of_each) in PAIRS.items():
        with Path(__file__).with_name(name).open(newline="", encoding="utf-8") as file:
            pairs = list(csv.DictReader(file, delimiter="\t"))
        counts = Counter((pair["language"], pair["depends"]) for pair in pairs)
        assert set(counts.values()) == {of_each // 2}
        assert len(counts) == 2 * len(GRAMMARS)
        wrong = [pair for pair in pairs if is_follow_up(pair["question"]) != (pair["depends"] == "yes")]
        output = "\n".join(f"{pair['depends']}: {pair['question']}" for pair in wrong)
        assert 1 - len(wrong) / len(pairs) >= least, output


FOLLOW_UPS = [
    "What about database migrations?", "Why?", "Is there another way?", "Why was that done?",
    "Und was kostet das?", "Pourquoi cela?", "more", "the second one",
    "Tell me more about this incident, please", "Who signed that agreement?", "Muss es genehmigt werden?",
    "Où les achète-t-on ?",
]  # fmt: skip


INDEPENDENT_QUESTIONS = [
    "How do I deploy the application?", "INC-4821 root cause", "请假政策 年假 天数", "公司的年假有多少天？",
    "Who runs the IT department?", "Where is the same-day delivery policy?",
    "What is the Este Lauder policy?", "Which of the other plans costs more than one day?", "What is SAML?",
    "Who said that the bridge is closed?", "Does the contract say when it ends?",
    "Quel jour la laiterie est-elle ouverte aux visiteurs ?", "Où en est le chantier de Brest ?",
]  # fmt: skip


def test_a_question_depends_on_the_history_or_is_independent():
    questions = FOLLOW_UPS + INDEPENDENT_QUESTIONS
    assert [question for question in questions if is_follow_up(question)] == FOLLOW_UPS


def test_an_adversarial_text_takes_no_time():
    units = ("it ", "qui le ", "lo la ", "it is a ", "die große ", ", ", "l'")
    for unit in units:
        for beginning in ("", "Is ", "Est-ce "):
            started = time.thread_time()
            is_follow_up(beginning + unit * 50_000)
            assert time.thread_time() - started < 0.5
