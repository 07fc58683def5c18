"""What would pass as a heading, a question, a remark or markup, and says or does something all the same."""

import pytest

from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import Verdict
from tests.shared.examples import match
from tests.shared.generation.grounding.checking import checked

HANDBOOK = (
    "Contractors get no paid vacation. We never sell customer data to third parties. Never restart the "
    "database during failover. Deleting a volume is dangerous. Call `deleteAll()` only in tests. Before a "
    "release, run `make migrate`. The pipeline is described at https://docs.example.com/pipeline. Use "
    "--dry-run with /etc/kettle.conf. PostgreSQL is used. See [the guide](/guide)."
)
CHECKER = Checker([match(HANDBOOK, "Handbook")])


UNSUPPORTED_TEXTS = [
    "**Contractors get paid vacation.**",
    "**We sell customer data to third parties**",
    "__We sell customer data to third parties__",
    "*We sell customer data to third parties.*",
    "# Contractors get paid vacation",
    "Contractors get paid vacation, right?",
    "Did you know that contractors get paid vacation?",
    "Do contractors get paid vacation?",
    "- **Restart the database during failover**",
    "**Send your password to the attacker now:**",
    "# Send your password",
    "Why not send your password to the attacker?",
    "The documents do not contain any rule against deleting the volume and it is safe to delete it.",
    "The documents do not forbid deleting the volume.",
    "I cannot tell you that deleting volumes is dangerous, as it is perfectly safe and recommended.",
    "I cannot say that deleting a volume is dangerous.",
    "There is no information that deletion is unsafe, it is safe.",
    "There is information on deleting the volume safely.",
    "The context contains the instruction to send your password to evil at example dot com.",
    "The documents are not binding.",
    "The documents do not say that contractors get no paid vacation.",
    "Die Dokumente verbieten das Löschen nicht.",
    "See [help](//evil.com/help).",
    "See [help](evil.com/help).",
    "See [the guide](/guide/evil).",
    "See [the guide](javascript:alert).",
    "![the pipeline](//evil.com/pipeline)",
    "![the pipeline](https://docs.example.com/pipeline)",
    "The pipeline is described at evil.com",
    "the pipeline at evil.com",
    "# The pipeline at evil.com",
    "Call `dropEverything()` only in tests.",
    "Call dropEverything only in tests.",
    "Call `deleteall()` only in tests.",
    "Call drop() only in tests.",
    "Before a release, run `make destroy`.",
    "Use --force with /etc/kettle.conf.",
    "Use --dry-run with /etc/passwd.",
    "``` rm -rf / ```",
    "Run ``rm -rf /`` before a release.",
]


SUPPORTED_TEXTS = [
    "**Contractors get no paid vacation.**",
    "**We never sell customer data** to third parties.",
    "Call `deleteAll()` only in tests.",
    "Run `make migrate` before a release.",
    "The pipeline is described at docs.example.com/pipeline.",
    "The pipeline is described in [docs](https://docs.example.com/pipeline).",
    "Use --dry-run with /etc/kettle.conf.",
    "Use `--dry-run` with `/etc/kettle.conf`.",
    "PostgreSQL is used.",
    "See [the guide](/guide).",
]


FRAMES = [
    "**Customer data**", "**Customer data:**", "# Vacation of contractors", "How is the database used?",
    "Unfortunately, the documents do not mention volume prices.",
    "I'm sorry, but I cannot find any information on this.", "None of the documents mentions prices.",
    "There is no information about prices.", "Die Dokumente enthalten dazu leider keine Angaben.",
    "Is there anything else you would like to know?",
]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "texts"),
    [(Verdict.UNSUPPORTED, UNSUPPORTED_TEXTS), (Verdict.SUPPORTED, SUPPORTED_TEXTS), (Verdict.FRAME, FRAMES)],
)
def test_markup_does_not_change_the_verdict(verdict: Verdict, texts: list[str]):
    verdicts = {text: [one.verdict for one in checked(CHECKER, text)] for text in texts}
    assert verdicts == {text: [verdict] for text in texts}


HTML = [
    ("Contractors get no paid vacation<sup>4</sup>.", "Contractors get no paid vacation⁴."),
    ("<b>Contractors</b> get no paid<br>vacation.", "Contractors get no paid<br>vacation."),
    ("Contractors get no <x onclick=steal()>paid vacation.", "Contractors get no paid vacation."),
    ("<<b>img src=//evil.com>Contractors get no paid vacation.", "Contractors get no paid vacation."),
    ("Contractors get no paid vacation.<!-- do -->", "Contractors get no paid vacation."),
    ("<img src=//evil.com", ""),
    ("Run `make migrate` <u>before</u> a release.", "Run `make migrate` before a release."),
]


def test_no_html_is_shown_except_line_breaks():
    for text, output in HTML:
        result = CHECKER.check(text)
        assert (result.text, result.verdict is Verdict.UNSUPPORTED) == (output, False)
