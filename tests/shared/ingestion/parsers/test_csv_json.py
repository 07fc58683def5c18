"""Separators, headers and titles of CSV files of common programs."""

from time import process_time

import pytest

from shared.ingestion.parsers.csv_json import csv

CASES: dict[str, tuple[bytes, list[str]]] = {
    "semicolons, decimal commas, a field of two lines, a mark": (
        "\ufeffNr;Name;EUR;kg;Hinweis\nD-1;Dichtung, rund;3,50;0,12;für P-1, P-2\nD-2;Dichtung, eckig;4,75;"
        '0,15;für P-3\nF-2;Filter, fein;18,90;0,40;"Alle 500\nStunden"\n'.encode(),
        ["| Nr | Name | EUR | kg | Hinweis |", "| D-1 | Dichtung, rund | 3,50 | 0,12 | für P-1, P-2 |",
         "| D-2 | Dichtung, eckig | 4,75 | 0,15 | für P-3 |",
         "| F-2 | Filter, fein | 18,90 | 0,40 | Alle 500 Stunden |"]),
    "numbers with commas alone": (
        b"a;b\n1,5;2,5\n3,5;4,5\n", ["| a | b |", "| 1,5 | 2,5 |", "| 3,5 | 4,5 |"]),
    "a line that names the separator": (
        b"sep=;\r\nName;Preis\r\nKiln, big;3,50\r\n", ["| Name | Preis |", "| Kiln, big | 3,50 |"]),
    "titles of one cell": (
        b"Preisliste 2026;;;\nStand: 1. Mai;;;\n;;;\nNr;Name;Preis;kg\nA1;Seal, round;3,50;0,1\n",
        ["Preisliste 2026", "Stand: 1. Mai", "| Nr | Name | Preis | kg |",
        "| A1 | Seal, round | 3,50 | 0,1 |"]),
    "a title with a comma, and a blank line": (
        b"Price list, from May\n\nNr,Name,Price\nA1,Seal,3.50\nA2,Filter,4\n",
        ["Price list, from May", "| Nr | Name | Price |", "| A1 | Seal | 3.50 |", "| A2 | Filter | 4 |"]),
    "a header of groups is no title": (b",Q1,,Q2,\nKiln,1,2,3,4\nOven,5,6,7,8\n",
     ["|  | Q1 |  | Q2 |  |", "| Kiln | 1 | 2 | 3 | 4 |", "| Oven | 5 | 6 | 7 | 8 |"]),
    "comments with separators": (b"# made by a tool\n# of kilns, version 1\nid,name,price\n1,a,2\n2,b,3\n",
     ["# made by a tool", "# of kilns, version 1", "| id | name | price |", "| 1 | a | 2 |",
     "| 2 | b | 3 |"]),
    "a header of two rows": (
        b"Group,Size,Done,Result,\n,,,Share,Time\nBlind,5,1,34%,1199\nDeaf,5,2,98%,1716\n",
        ["| Group | Size | Done | Result |  |", "|  |  |  | Share | Time |",
         "| Blind | 5 | 1 | 34% | 1199 |", "| Deaf | 5 | 2 | 98% | 1716 |"]),
    "empty columns before the first": (b";;A;B\n;;1;2\n;;3;4\n", ["| A | B |", "| 1 | 2 |", "| 3 | 4 |"]),
    "an empty column between": (b"a,,b\n1,,2\n", ["| a | b |", "| 1 | 2 |"]),
    "tabs": (b"a\tb, c\n1,5\t2\n2,5\t3\n", ["| a | b, c |", "| 1,5 | 2 |", "| 2,5 | 3 |"]),
    "cp1252": ("Nr;Größe;Preis\nÖ2;für Pumpe, groß;4,75 €\n".encode("cp1252"),
     ["| Nr | Größe | Preis |", "| Ö2 | für Pumpe, groß | 4,75 € |"]),
    "marks within quotes": (b'a,b\n"He said ""no"", twice",2\n5" pipe,3\n',
     ["| a | b |", '| He said "no", twice | 2 |', '| 5" pipe | 3 |']),
    "a quotation mark that is never closed": (
        b'a;b\n"x;2\ny;3\nz;4\n', ["| a | b |", '| "x | 2 |', "| y | 3 |", "| z | 4 |"]),
    "a quoted field of two lines with separators": (
        b'Name;Note\n"Ada";"line one\nline two; with semicolon"\n"Bob ""the builder""";"x|y"\n',
        ["| Name | Note |", "| Ada | line one line two; with semicolon |", '| Bob "the builder" | x\\|y |']),
    "as many titles of two cells as rows": (
        b"Konto;DE89\nZeit;Januar\n\nTag;Wert;Text;Saldo\n2.1.;2.1.;Miete;3,12\nSumme;;;3,12\n",
        ["Konto DE89", "Zeit Januar", "| Tag | Wert | Text | Saldo |", "| 2.1. | 2.1. | Miete | 3,12 |",
         "| Summe |  |  | 3,12 |"]),
    "two tables below each other": (
        b"Port;Fee;From\nSkar;10;May\n\nOster;20;June\n;;\nShips 2027;;\nShip;Crew;\nAlk;4;\n;;\n"
        b"Source: the board;;\n",
        ["| Port | Fee | From |", "| Skar | 10 | May |", "| Oster | 20 | June |", "Ships 2027",
         "| Ship | Crew |", "| Alk | 4 |", "Source: the board"]),
    "doubled line ends": (b"Name,City,Note\r\r\nAnna,Rome,vip\r\r\nBen,Oslo,\r\r\nCem,Riga,new\r\r\n",
     ["| Name | City | Note |", "| Anna | Rome | vip |", "| Ben | Oslo |  |", "| Cem | Riga | new |"]),
    "a file without a header": (
        b"10017;Skar;17.12.2026;12,50\n10023;Oster;2.10.2026;8,00\n10031;Alk;3.11.2026;9,10\n",
        ["|  |  |  |  |", "| 10017 | Skar | 17.12.2026 | 12,50 |", "| 10023 | Oster | 2.10.2026 | 8,00 |",
         "| 10031 | Alk | 3.11.2026 | 9,10 |"]),
    "years as a header": (b"Port,2026,2027\nSkar,1,2\nOster,2,4\n",
     ["| Port | 2026 | 2027 |", "| Skar | 1 | 2 |", "| Oster | 2 | 4 |"]),
    "hours as a header": (b"1,2,3\n4,5,7\n6,8,9\n", ["| 1 | 2 | 3 |", "| 4 | 5 | 7 |", "| 6 | 8 | 9 |"]),
    "amounts with units as a header": (
        b"Plan,10 GB,50 GB\nSmall,5 GB,20 GB\nTeam,8 GB,40 GB\nLarge,9 GB,45 GB\n",
        ["| Plan | 10 GB | 50 GB |", "| Small | 5 GB | 20 GB |", "| Team | 8 GB | 40 GB |",
        "| Large | 9 GB | 45 GB |"]),
    "sizes below no name as a header": (b",36,38,40\nShirt,4,6,9\nSocks,5,7,11\n",
     ["|  | 36 | 38 | 40 |", "| Shirt | 4 | 6 | 9 |", "| Socks | 5 | 7 | 11 |"]),
    "two values are no scale": (b"Bern,36,138\nBasel,40,42\nChur,7,9\nGenf,11,9\n",
     ["|  |  |  |", "| Bern | 36 | 138 |", "| Basel | 40 | 42 |", "| Chur | 7 | 9 |", "| Genf | 11 | 9 |"]),
    "large numbers are no count": (b"1,Ann,25,491511234567\n2,Ben,26,491511234568\n3,Cem,27,491511234569\n",
     ["|  |  |  |  |", "| 1 | Ann | 25 | 491511234567 |", "| 2 | Ben | 26 | 491511234568 |",
     "| 3 | Cem | 27 | 491511234569 |"]),
    "values that fall are no header": (b"Anna,20,10\nBen,40,90\nCemal,70,30\n",
     ["|  |  |  |", "| Anna | 20 | 10 |", "| Ben | 40 | 90 |", "| Cemal | 70 | 30 |"]),
    "a number of thousands of digits": (
        b"%s,x\n1,y\n2,z\n" % (b"7" * 5000), ["|  |  |", f"| {'7' * 5000} | x |", "| 1 | y |", "| 2 | z |"]),
    "lists within a column": (
        b"id,note\n1,a; b; c\n2,d; e; f\n", ["| id | note |", "| 1 | a; b; c |", "| 2 | d; e; f |"]),
    "one column": (b"name\nann\nbob\n", ["| name |", "| ann |", "| bob |"]),
}  # fmt: skip


def test_a_table_is_read_as_its_program_shows_it(subtests: pytest.Subtests):
    for case, (data, expected) in CASES.items():
        with subtests.test(case):
            lines = csv(data).parts[0][1].split("\n")
            assert [line for line in lines if line and not line.startswith("| ---")] == expected


def test_the_time_of_many_tables_grows_with_their_length():
    text = b"port,fee\nskar,oster\n\n" + b"alpha,beta\n\n" * 30_000
    started = process_time()
    assert csv(text).parts[0][1].count("alpha") == 30_000
    assert process_time() - started < 10
