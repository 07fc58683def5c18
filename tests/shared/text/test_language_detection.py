"""The language of a question, told by its function words."""

from shared.generation.refusal_texts import INSUFFICIENT, RAG_INSUFFICIENT, insufficient
from shared.text.language_detection import clear_language_of, language_of

# Of words that are Dutch function words too.
ENGLISH = [
    "Door opening hours", "Van insurance excess", "MET gene expression", "Kim Larsen", "mint tea",
    "care homes", "ten by ten", "DAT file format", "Dan Brown books",
    "Dan Brown books in order", "Hun Sen biography", "Van Gogh museum opening hours", "ONS inflation figures",
    "MAG welding settings", "cheapest van rental", "List van models",
]  # fmt: skip
QUESTIONS = {
    "en": ["What is the fee?", "Do checkout links expire?", "Mint price?", "Come back when?",
           "Who is José Núñez in Málaga?", "kettle", "", "12345", "公司的年假有多少天？",
           *ENGLISH],
    "de": ["Wie hoch ist die Gebühr?", "Kündigungsfrist", "was kostet das", "Was kostet Miete?",
     "Was heißt das?",
     "Wer ist Tim in London?"],
    "fr": ["Quel est le tarif ?", "Où est-ce ?", "Qui en est responsable ?", "Tu as le contrat ?",
     "Et à Grenoble ?"],
    "es": [
        "¿Cuál es la tarifa?", "¿Quién la firma?", "que hay de la oficina", "Que es SAML?", "¿Vacaciones?"],
    "nl": ["Wanneer is de vergadering van de raad?", "Hoe lang duurt de cursus?", "Wat kost een vergunning?",
     "prijs van het abonnement", "Is het gebouw op zondag open?", "Wie is de burgemeester?",
     "Wanneer eindigt die periode?", "Zijn er kosten?", "Kunt u helpen?"],
    "pt": ["Qual é a taxa?", "Quantas bolsas de estudo atribuiu a associação?", "Quem assina o contrato?",
     "Até quando posso cancelar?", "Onde fica a sede?", "O que é SAML?", "Como faço para pedir férias?"],
    "it": ["Qual è la tariffa?", "Quanto costa la reperibilità?", "Chi firma il contratto?", "Cos'è SAML?",
     "Quando viene il tecnico per la prima visita?", "Dove si trova la sede?", "Come posso disdire?"],
    "da": ["Hvad var indtægten i 2013?", "Hvornår åbner biblioteket?", "Hvor mye ble fakturert høsten 2017?"],
    "sv": ["Hur många dagars semester har jag?", "Vem skriver under avtalet?", "När öppnar biblioteket?"],
    "fi": ["Kuinka monta lomapäivää minulla on?", "Missä kokous on?", "Milloin kirjasto avataan?"],
    "pl": ["Ile kosztuje abonament?", "Kto podpisuje umowę?", "Kiedy jest otwarta biblioteka?"],
    "cs": ["Kolik stojí předplatné?", "Kdo podepisuje smlouvu?", "Jaký je termín pro výpověď?"],
    "ro": ["Cât costă abonamentul?", "Cine semnează contractul?", "Unde este sediul?"],
    "hu": ["Mennyi az előfizetés ára?", "Mikor nyit a könyvtár?", "Hány nap szabadság jár?"],
    "tr": ["Abonelik ne kadar ve nasıl ödenir?", "Kaç gün izin var?", "Başvuru için hangi belgeler gerekli?"],
    "id": ["Berapa biaya untuk langganan ini?", "Kapan perpustakaan dibuka?", "Apakah ada diskon?"],
    "ru": ["Сколько дней отпуска?", "Кто подписывает договор?", "какая плата за обслуживание"],
    "uk": ["Скільки днів відпустки?", "Хто підписує договір?"],
    "el": ["Πόσες ημέρες άδειας έχω;", "Ποιος υπογράφει τη σύμβαση;"],
    "ar": ["كم عدد أيام الإجازة؟", "من يوقع على العقد؟"],
}  # fmt: skip


def test_a_question_s_language_is_detected_by_its_function_words():
    for language, questions in QUESTIONS.items():
        assert [question for question in questions if language_of(question) != language] == []


def test_a_short_german_question_is_clearly_german():
    assert {clear_language_of(text, 1) for text in ("Wie teuer?", "Wie viel?", "Wie lange?")} == {"de"}


def test_the_letters_of_an_identifier_are_no_words():
    assert language_of("autoclave Velta S18 error E14") == "en"


def test_refusals_differ_by_language_and_default_to_english():
    assert len({insufficient(questions[0]) for questions in QUESTIONS.values()}) == 7
    assert insufficient("Hvad koster det i 2013?") == INSUFFICIENT


def test_refusals_announce_no_sources_unless_the_contract_lists_them():
    for questions in QUESTIONS.values():
        assert insufficient(questions[0]).endswith(".")
    assert f"{INSUFFICIENT} Here are the most relevant sources I found:" == RAG_INSUFFICIENT
