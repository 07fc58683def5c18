"""Questions for one cell of a wide table, one line of a form or one clause, in five languages.

Of a table: the row with its name, and the named columns; of a form: the line with the value.
"""

from functools import partial

from shared.generation.cited_documents import cite
from shared.generation.extractive.answer import extract
from shared.models.embeddings import Embedder, embed
from shared.types import GeneratedText
from tests.shared.examples import match


def table(*rows: str) -> str:
    header, *others = (f"| {row} |" for row in rows)
    return "\n".join([header, "|---" * rows[0].count("|") + "|---|", *others])


STOCK = table(
    "Code | Product | Hall | Stock | Minimum | Unit price | Supplier",
    "2001 | Paper roll 80 mm | North | 340 | 100 | 1.20 € | Hartmann",
    "2002 | Paper roll 57 mm | North | 95 | 120 | 0.90 € | Hartmann",
    "2003 | Label printer LP-4 | South | 12 | 5 | 249.00 € | Ikeda",
)
ROOMS = table(
    "Nr. | Raum | Gebäude | Fläche | Plätze | Miete | Zustand",
    "1 | Seminarraum Linde | Altbau | 62 m² | 24 | 180,00 € | gut",
    "2 | Seminarraum Ahorn | Neubau | 88 m² | 40 | 260,00 € | sehr gut",
)
STAFF = table(
    "N° | Nom du salarié | Service | Salaire brut | Prime de nuit | Congés restants | Date d'entrée",
    "7 | Aubert | Atelier | 2 310,00 € | 120,00 € | 11 | 03/02/2016",
    "8 | Delmas | Magasin | 1 980,00 € | 0,00 € | 4 | 01/09/2021",
)
SPENDING = table(
    "Org | Programa | Descripción | Presupuesto inicial | Cambios del año | Presupuesto final | Pagos",
    "1 | 151 | Alumbrado público | 48.000,00 | -3.500,00 | 44.500,00 | 41.902,15",
    "1 | 163 | Parques y jardines | 96.400,00 | 0,00 | 96.400,00 | 95.003,77",
)
FLEET = table(
    "Kenteken | Voertuig | Chauffeur | Kilometerstand | Keuring | Verbruik | Lease per maand",
    "V-12-KLM | Bestelbus Noord | de Wit | 84.210 | 12-03-2026 | 7,9 l | € 412",
    "V-77-RTS | Bestelbus Zuid | Bakker | 12.870 | 30-09-2027 | 7,1 l | € 455",
)
# By question: its table and the row of the answer.
CELLS = {
    "What is the minimum of the label printer LP-4?": (STOCK, "2003: Product Label printer LP-4, Minimum 5."),
    "Wie hoch ist die Miete im Seminarraum Ahorn?": (ROOMS, "2: Raum Seminarraum Ahorn, Miete 260,00 €."),
    "Combien de congés restants a Delmas ?": (STAFF, "8: Nom du salarié Delmas, Congés restants 4."),
    "¿Cuáles fueron los pagos de los parques y jardines?": (
        SPENDING, "1: Descripción Parques y jardines, Pagos 95.003,77."
    ),
    "Wanneer is de keuring van de Bestelbus Zuid?": (
        FLEET, "V-77-RTS: Voertuig Bestelbus Zuid, Keuring 30-09-2027."
    ),
    # The question names no column.
    "¿Cuánto costó el alumbrado público?": (
        SPENDING,
        "1: Programa 151, Descripción Alumbrado público, Presupuesto inicial 48.000,00, Cambios del año "
        "-3.500,00, Presupuesto final 44.500,00, Pagos 41.902,15.",
    ),
}  # fmt: skip


def answer(embedder: Embedder, question: str, text: str) -> GeneratedText:
    passages = [match(text, "Data")]
    return extract(question, passages, cite(passages), partial(embed, embedder))


def test_a_cell_is_told_with_the_name_of_its_row(embedder: Embedder):
    answers = {question: answer(embedder, question, text).text for question, (text, _) in CELLS.items()}
    assert answers == {question: f'"Data": {row} [1]' for question, (_, row) in CELLS.items()}


def test_a_row_is_chosen_by_a_cell_that_has_no_further_word(embedder: Embedder):
    """Though the name of its column has the word, too."""
    text = table(
        "Id | Post | Plan or Actual | Amount", "1 | Tours | Plan | 1350000", "2 | Tours | Actual | 1537158"
    )
    draft = answer(embedder, "What is the actual amount of the tours?", text)
    assert [sentence.text[0] for sentence in draft.sentences] == ["2"]


PERMIT = (
    "# Application for a parking permit\n\nSurname, first name: OKAFOR, CHIDI\n"
    "Registration number: LH-KV 482\nParking zone: Zone C (Harbour)\nPayment: Direct debit"
)
TAX = (
    "# Tax form\n\n1 Name (as shown on your tax return): Bluewater Harbor Catering\n\n"
    "Employer identification number: 01-0573846\n\nAddress: 418 Commercial Street, Portland"
)
ANTRAG = "# Antrag\n\nNachname: Yılmaz\nPersonalnummer: 40118\nAbteilung: Einkauf\nBeginn: 01.09.2026"
FICHE = "# Fiche de paie\n\nSalarié: Delmas Paul\nMatricule: 2214\nSalaire net: 1 612,40\nCongés restants: 11"
SOLICITUD = (
    "# Solicitud de beca\n\nSolicitante: Herrera Lucía\nUniversidad: Salamanca\nImporte mensual: 450,00\n"
    "Cuenta bancaria: ES91 2100"
)
AANVRAAG = (
    "# Aanvraag vergunning\n\nAanvrager: Visser\nKenteken: V-12-KLM\nGeldig vanaf: 01-04-2026\nZone: Haven"
)
# By question about the subject of a form: its text and the value.
LINES = {
    "What is the registration number of Chidi Okafor?": (PERMIT, "Registration number: LH-KV 482."),
    "What is the employer identification number of Bluewater Harbor Catering?": (
        TAX, "Employer identification number: 01-0573846."
    ),
    "Welche Personalnummer hat Yılmaz?": (ANTRAG, "Personalnummer: 40118."),
    "Combien de congés restants a Paul Delmas ?": (FICHE, "Congés restants: 11."),
    "¿En qué universidad está Lucía Herrera?": (SOLICITUD, "Universidad: Salamanca."),
    "Wat is het kenteken van Visser?": (AANVRAAG, "Kenteken: V-12-KLM."),
}  # fmt: skip


def test_the_line_of_the_subject_is_no_answer_about_the_subject(embedder: Embedder):
    for question, (text, line) in LINES.items():
        quoted = [sentence.text for sentence in answer(embedder, question, text).sentences]
        assert any(line in text for text in quoted)


def test_a_question_for_the_name_is_answered_by_its_line(embedder: Embedder):
    for question in ("Who is Okafor?", "What is the first name of Okafor?"):
        assert "CHIDI" in answer(embedder, question, PERMIT).text


def test_lines_under_the_name_of_another_subject_are_no_answer(embedder: Embedder):
    text = "## Ann Lee\n\nPhone: 08171-440\nRoom: 12\n\n## Bob Ray\n\nPhone: 08171-441\nRoom: 14"
    (sentence,) = answer(embedder, "What is the phone number of Bob Ray?", text).sentences
    assert sentence.text == "Bob Ray: Phone: 08171-441."


SUPPLY = (
    "# Supply agreement\n\n## 4. Prices\n\n4.1 Prices are fixed for the first year of the agreement.\n"
    "4.2 Invoices are payable within 45 days.\n4.3 Overdue amounts bear interest at six points."
)
MIETE = (
    "# Mietvertrag\n\n## 2. Miete\n\n2.1 Die Miete ist am dritten Werktag zu zahlen.\n"
    "2.2 Der Mietvertrag läuft auf Zeit.\n2.3 Nebenkosten werden jährlich abgerechnet."
)
BAIL = (
    "# Bail commercial\n\n## 3. Loyer\n\n3.1 Le bail est signé pour neuf ans.\n"
    "3.2 La caution est de deux mois.\n3.3 Le loyer est indexé chaque année."
)
ESTATUTOS = (
    "# Estatutos\n\n## 5. Socios\n\n5.1 Los estatutos obligan a todos.\n5.2 La cuota se paga en enero.\n"
    "5.3 Los socios pueden darse de baja."
)
STATUTEN = (
    "# Statuten\n\n## 6. Leden\n\n6.1 De statuten gelden voor alle leden.\n"
    "6.2 De bijdrage is vooraf te betalen.\n6.3 Het lidmaatschap eindigt bij opzegging."
)
CLAUSES = {
    "What does clause 4.3 of the supply agreement say?": (SUPPLY, "4.3 Overdue amounts"),
    "What is agreed in section 4.2 of the agreement?": (SUPPLY, "4.2 Invoices"),
    "Was regelt Ziffer 2.3 des Mietvertrags?": (MIETE, "2.3 Nebenkosten"),
    "Was steht in § 2.1 des Mietvertrags?": (MIETE, "2.1 Die Miete"),
    "Que dit l'article 3.2 du bail commercial ?": (BAIL, "3.2 La caution"),
    "Quel est le contenu de la clause 3.3 du bail ?": (BAIL, "3.3 Le loyer"),
    "¿Qué dice el artículo 5.2 de los estatutos?": (ESTATUTOS, "5.2 La cuota"),
    "¿Qué establece la cláusula 5.3 de los estatutos?": (ESTATUTOS, "5.3 Los socios"),
    "Wat staat er in artikel 6.2 van de statuten?": (STATUTEN, "6.2 De bijdrage"),
    "Wat regelt artikel 6.3 van de statuten?": (STATUTEN, "6.3 Het lidmaatschap"),
}


def test_a_clause_is_found_by_its_number(embedder: Embedder):
    for question, (text, clause) in CLAUSES.items():
        (sentence, *others) = answer(embedder, question, text).sentences
        assert sentence.text.startswith(clause)
        assert not others


def test_a_number_within_a_clause_is_not_its_number(embedder: Embedder):
    text = "# Lease\n\n1.1 The lease refers to clause 4.3 of the agreement.\n4.4 The deposit is paid in May."
    draft = answer(embedder, "What does clause 4.3 of the agreement say?", text)
    assert not draft.sentences[0].text.startswith("4.4")
