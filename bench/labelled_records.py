"""Labelled set made of an org's records of requests, for `make eval`, `make calibrate` and `make compare`.

    python -m bench.labelled_records URL ORG FOLDER [--private]

URL is that of the database, whose role must see all rows. FOLDER gets the files of labelled_sets.py:
the org's shared documents, and the questions that its admins have labelled (docs/records.md), each once with
the label of its latest labelled record: the text of the search, or of the question if there were several
searches. A question is left out if none of its documents is exported. Private documents only with --private:
then keep the folder as safe as the database.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console

DOCUMENTS = """
select id::text as id, title, content as text from rag.documents
where org_id = %s and content <> '' and (owner_id is null or %s) order by id
"""
# A wrong answer to a question without documents says nothing about whether there are any.
QUESTIONS = """
select distinct on (lower(btrim(text))) id::text, text, document_ids::text[], case
  when (verdict = 'right') = (answer is not null) or document_ids <> '{}' then 'answerable'
  when answer is null then 'out_of_corpus' else 'wrong' end
from rag.request_records
cross join lateral (
  select case when jsonb_array_length(queries) = 1 then queries -> 0 ->> 'text' else question end
) as exported (text)
where org_id = %s and verdict is not null and expires_at > now()
order by lower(btrim(text)), created_at desc
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.labelled_records",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url")
    parser.add_argument("org")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--private", action="store_true", help="with the private documents of members")
    arguments = parser.parse_args()
    with psycopg.connect(arguments.url) as connection:
        documents, questions = write(
            connection, arguments.org, arguments.folder, with_private=arguments.private
        )
    Console().print(f"{documents:,} documents and {questions:,} labelled questions in {arguments.folder}")
    return 0 if questions else 1


def write(
    connection: psycopg.Connection[Any], org_id: str, folder: Path, *, with_private: bool
) -> tuple[int, int]:
    """The numbers of documents and questions. A document without a text is left out."""
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        documents = cursor.execute(DOCUMENTS, [org_id, with_private]).fetchall()
    ids = {document["id"] for document in documents}
    questions = [
        row for row in connection.execute(QUESTIONS, [org_id]) if not row[2] or not ids.isdisjoint(row[2])
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in documents))
    (folder / "queries.jsonl").write_text(
        "".join(
            json.dumps({"id": record_id, "text": text, "meta": {"label": label}}) + "\n"
            for record_id, text, _, label in questions
        )
    )
    lines = ["query-id\tcorpus-id\tscore"]
    for record_id, _, relevant, label in questions:
        if label == "answerable":
            lines += [f"{record_id}\t{document}\t1" for document in relevant if document in ids]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n")
    return len(documents), len(questions)


if __name__ == "__main__":
    sys.exit(main())
