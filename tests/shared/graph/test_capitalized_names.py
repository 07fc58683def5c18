"""Names in running text: runs of capitals, and quotations."""

from tests.shared.graph.reading import names

NAMED = [
    ("We met Rosa Keane in Mallow.", ["Rosa Keane", "Mallow"]),
    ("He was the son of Boso the Elder.", ["Boso the Elder"]),
    ("It was signed by Ludwig van Beethoven and Oscar de la Renta.",
     ["Ludwig van Beethoven", "Oscar de la Renta"]),
    ("Ladle, which reads the files, is down.", ["Ladle"]),
    ("| Letter | Who |\n|---|---|\n| D | Clarendon (frames) |\n| E | Halden |", ["Clarendon", "Halden"]),
    ("Amounts:\nTeasel: 74,000 granted of 90,000.", ["Teasel"]),
    ("Rosa Keane 11:05: out please", ["Rosa Keane"]),
    ("They read J. R. R. Tolkien.", ["J. R. R. Tolkien"]),
    ("He was abbot of St. Maurice's Abbey.", ["St. Maurice's Abbey"]),
    ("It fell to Lothair II of Lotharingia.", ["Lothair II of Lotharingia", "Lotharingia"]),
    ("She works at the Ministry of Health.", ["Ministry of Health", "Health"]),
    ("They asked Dr. Smith and Mrs Jones.", ["Smith", "Jones"]),
    ("Yesterday Alice Brown left.", ["Alice Brown"]),
    ("We saw Halden’s loggers.", ["Halden"]),
    ("They use Frostline Cloud at AT&T.", ["Frostline Cloud", "AT&T"]),
    ("Он видел Анну Каренину.", ["Анну Каренину"]),
    ("Είδαμε τον Νίκο Καζαντζάκη.", ["Νίκο Καζαντζάκη"]),
    ("Michael Curtiz was born there. Later Curtiz left.", ["Michael Curtiz"]),
    ("Install the Frostline app.", ["Frostline app"]),
    # A later heading has only names of the text, and in German capitals alone are no names.
    ("Yes.\n\n# About Frostline Cloud And Us\n\nThe logger uses Frostline Cloud.", ["Frostline Cloud"]),
    ("Die Anlage und der Fahrer sind nicht mit Rosa Keane und XGH verbunden.", ["Rosa Keane", "XGH"]),
]  # fmt: skip
QUOTED = [
    ('They saw "The Straw Hat" again.', ["The Straw Hat"]),
    ("Man nennt es „Die Blaue Stunde“.", ["Die Blaue Stunde"]),
    ("Il lit « Les Misérables ».", ["Les Misérables"]),
    ("他读了《红楼梦》。", ["红楼梦"]),
    ("هو قرأ «ألف ليلة» أمس", ["ألف ليلة"]),
]
NONE = [
    "The door was open.", "This is it. However, that is not.", "March and April were cold. Monday too.",
    "If it rains, stay. When it stops, go.", "STOP WRITING TO ME IN CAPITALS NOW PLEASE",
    "I think so. Yes. No. Thanks, best regards", "An American writer and an Irish farmer.",
    "He said: \"I don't know.\"", "## § 3 Exclusions", "- Check the tank\n- Open the valve",
    "3.9 GWh, 410 kWp and 5 MHz", "", " \n\t", "and/or 24/7 km/h", "วันนี้อากาศดี", "اليوم الطقس جميل",
    "The cost is high.\nCost: 20 of the 90 euros.", "- **Save** the file",
]  # fmt: skip


def test_a_text_has_names():
    assert [(text, names(text)) for text, _ in NAMED + QUOTED] == NAMED + QUOTED
    assert [text for text in NONE if names(text)] == []
    assert "Milk" not in names("Milk Rosa Keane likes. She drinks milk.")
