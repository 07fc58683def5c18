"""Names and values that a passage has, in another context than a claim's."""

from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import CheckResult, Verdict
from tests.shared.examples import match

CANALS = (
    "The canal of Lorne was dug by Scottish prisoners between the two harbours. Its locks were designed by "
    "Margaret Telford and repaired twice. Robert Brindle painted the bridges of the valley. He sold his "
    "pictures to a museum in Glasgow. Later Brindle moved to Perth with his family. The bridges are made of "
    "oak. A quarry near Oban delivered the granite for the walls. The toll for a loaded barge was 12 "
    "shillings. Empty boats paid 4 shillings at the upper gate."
)


def check(sentence: str, title: str = "Waterways") -> CheckResult:
    return Checker([match(CANALS, title)]).check(sentence)


EXCHANGED = [
    "Its locks were designed by Robert Brindle and repaired twice.",
    "Margaret Telford painted the bridges of the valley.",
    "He sold his pictures to a museum in Oban.",
    "A quarry near Glasgow delivered the granite for the walls.",
    "Granite delivered for the walls: pictures.",
    "The toll for a loaded barge at the gate: 4 shillings.",
]


def test_a_name_or_value_of_another_sentence_is_out_of_context():
    for sentence in EXCHANGED:
        result = check(sentence)
        assert (result.verdict, result.reasons) == (Verdict.UNSUPPORTED, ("out_of_context",))
        assert result.evidence == ()


IN_CONTEXT = [
    "The locks were designed and twice repaired by Margaret Telford.",
    "Telford designed the locks of the canal.",
    # For a pronoun.
    "Robert Brindle sold his pictures to a museum.",
    # By the last name alone.
    "Robert Brindle later moved with his family.",
    # For a noun, with no other name instead.
    "Robert Brindle's bridges are made of oak.",
    # Of two sentences.
    "Scottish prisoners dug the canal between the two harbours, and Robert Brindle painted the bridges.",
    "The granite for the walls was from a quarry near: Oban.",
    "The toll for a loaded barge: 12 shillings.",
    # A sentence with a colon, too long for a label and its value.
    "The canal of Lorne was dug by Scottish prisoners between the two harbours, while its locks were "
    "designed by Margaret Telford and repaired twice by her, and the bridges are made of one material: oak.",
]


def test_a_name_or_value_in_its_context_is_supported():
    assert [sentence for sentence in IN_CONTEXT if check(sentence).verdict is not Verdict.SUPPORTED] == []


def test_a_value_without_its_label_is_out_of_context_although_it_has_most_of_the_words():
    passage = (
        "The ferry sails at noon. Tickets are sold by the captain. Dogs travel free on deck. The harbour "
        "closes in winter. A storm damaged the northern pier and the wooden sheds badly."
    )
    value = "a storm damaged the northern pier and the wooden sheds badly."
    result = Checker([match(passage)]).check(f"Dogs, tickets and the ferry of the harbour: {value}")
    assert (result.verdict, result.reasons) == (Verdict.UNSUPPORTED, ("out_of_context",))
    assert (
        Checker([match(passage)]).check(f"What damaged the pier badly: {value}").verdict is Verdict.SUPPORTED
    )


def test_a_name_of_the_title_belongs_to_every_sentence():
    sentence = "A quarry near Glasgow delivered the granite for the walls."
    assert check(sentence, "Granite in Glasgow").verdict is Verdict.SUPPORTED
