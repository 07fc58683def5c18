"""Values that a question names word for word: by a key, or by row and column."""

import pytest

from shared.generation.named_value import names_value
from tests.shared.examples import match

STAFF = "| Team | End of 2024 | End of 2025 |\n|---|---|---|\n| Support | 29 | 34 |\n| Sales | 41 | |"
PARTS = "| Article no. | Article | Weight |\n|---|---|---|\n| 000815 | Ear muffs | 0.22 kg |"
ERTRAG = "| | 2024 | 2025 |\n|---|---|---|\n| Umsatzerlöse | 91 | 88 |\n| Materialaufwand | 40 | 41 |"
FRAIS = "| Poste | Budget voté | Dépensé |\n|---|---|---|\n| Chauffage | 4 200 € | 4 510 € |"
GASTOS = (
    "| Concepto | Crédito inicial | Pagos |\n|---|---|---|\n| Limpieza viaria | 327.000,00 | 312.000,00 |"
)
DELEN = "| Onderdeel | Prijs | Voorraad |\n|---|---|---|\n| Remblok | € 12 | 40 |"
OFFER = "Position 1: 60 rollers: EUR 13,680.00\nTotal net: EUR 17,460.00\nIt is binding until 31 March 2026."
VERTRAG = "Mindestlaufzeit: 24 Monate\nKündigungsfrist Probezeit: 2 Wochen"
NAMED = [
    ("How many people worked in Support at the end of 2025?", STAFF),
    ("What was the staff of Sales at the end of 2024?", STAFF),
    ("Which article has the number 000815?", PARTS),
    ("What weight do the ear muffs have?", PARTS),
    ("Wie hoch waren die Umsatzerlöse 2025?", ERTRAG),
    ("Wie entwickelte sich der Materialaufwand im Jahr 2024?", ERTRAG),
    ("Combien a été dépensé pour le chauffage ?", FRAIS),
    ("¿Cuál fue el crédito inicial de la limpieza viaria?", GASTOS),
    ("Wat is de prijs van een remblok?", DELEN),
    ("What is the net total of the offer?", OFFER),
    ("Welche Kündigungsfrist gilt in der Probezeit?", VERTRAG),
]
NOT_NAMED = [
    # The row, or the column, is another one.
    ("How many people worked in Marketing at the end of 2025?", STAFF),
    ("How many people worked in Support at the end of 2023?", STAFF),
    # The cell is empty.
    ("How many people worked in Sales at the end of 2025?", STAFF),
    ("What is the price of the ear muffs?", PARTS),
    ("Wie viele Mitarbeiter gab es 2025?", ERTRAG),
    # A year names no row.
    ("What was the profit in 2025?", "| Year | Profit |\n|---|---|\n| 2025 | |\n| Result | 5 |"),
    ("What is the total of the discount?", OFFER),
    # A key of one word.
    ("Wie lang ist die Mindestlaufzeit?", VERTRAG),
    ("Who wrote the offer, and is it binding?", "The net total is binding. It is written in the offer."),
]


@pytest.mark.parametrize(("question", "text"), NAMED)
def test_a_value_is_named_by_its_key_or_by_row_and_column(question: str, text: str):
    assert names_value(question, [match("Nothing."), match(text)])


@pytest.mark.parametrize(("question", "text"), NOT_NAMED)
def test_a_part_of_the_name_names_no_value(question: str, text: str):
    assert not names_value(question, [match(text)])


def test_the_header_may_be_in_an_earlier_passage():
    rows = match("| Support | 29 | 34 |", location={"header": "| Team | End of 2024 | End of 2025 |"})
    assert names_value(NAMED[0][0], [rows])
