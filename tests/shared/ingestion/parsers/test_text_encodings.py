"""Texts in encodings other than UTF-8, which are detected."""

import pytest

from shared.errors import UnreadableDocument
from shared.ingestion.file_to_markdown import convert
from shared.ingestion.parsers.html_xml import html
from shared.ingestion.parsers.text_encodings import detected_encoding, text

TEXTS = {
    "Größe der Dichtung für Pumpe, geprüft von Jörg Müller.": ["cp1252"],
    "Les élèves ont été reçus à l’école. Prix : 12,50 €": ["cp1252"],
    "El niño comió más mañana. ¿Cuándo?": ["cp1252"],
    "Příliš žluťoučký kůň úpěl ďábelské ódy.": ["cp1250"],
    "Türkçe metin: şişe, ığdır, öğleden sonra.": ["cp1254"],
    "Η τιμή είναι δώδεκα ευρώ.": ["cp1253"],
    "Завтра совещание начинается в три часа.": ["koi8-r", "cp1251"],
    "これは日本語の文章です。明日の会議は三時に始まります。": ["shift_jis", "euc-jp"],
    "这是一个中文文件。明天的会议在三点开始。": ["gbk", "gb18030"],
    "這是一個中文檔案。明天的會議在三點開始。": ["big5"],
    "이것은 한국어 문장입니다. 내일 회의는 세 시에 시작합니다.": ["euc-kr"],
}


def test_a_text_in_another_encoding_is_read_with_a_note(subtests: pytest.Subtests):
    for expected, encodings in TEXTS.items():
        for encoding in encodings:
            with subtests.test(expected, encoding=encoding):
                data = expected.encode(encoding)
                parsed = text(data)
                assert parsed.parts == [(None, expected)]
                assert [note.startswith("The file is not in UTF-8.") for note in parsed.notes] == [True]
                assert html(data).parts == parsed.parts


def test_a_note_names_the_encoding():
    converted = convert("# Größe\n\nfür Pumpe, geprüft".encode("cp1252"), "a.md", None)
    assert (converted.kind, converted.title) == ("markdown", "Größe")
    assert converted.notes == ("The file is not in UTF-8. Its encoding was detected as cp1252.",)


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        (("Größe", "Menge", "Straße", "Käse"), "cp1252"),
        (("Año", "Créditos", "Denominación"), "cp1252"),
        (("Şehir", "Tutar", "Açıklama", "İsim"), "cp1254"),
    ],
)
def test_an_export_of_numbers_with_few_words_is_read(words: tuple[str, ...], encoding: str):
    rows = [
        f"{number};{number * 37 % 9973};{words[number % len(words)]};{number},25" for number in range(200)
    ]
    expected = "\n".join([";".join(words), *rows])
    data = expected.encode(encoding)
    assert detected_encoding(data) == encoding


def test_an_uncertain_encoding_is_refused(subtests: pytest.Subtests):
    for data in (b"caf\xe9", "Größe".encode("cp437"), "Größe für".encode("cp1252") + b"\0"):
        with subtests.test(data=data):
            with pytest.raises(UnreadableDocument, match="save it as UTF-8") as refused:
                text(data)
            assert refused.value.code == "not_text"
