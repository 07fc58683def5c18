"""Rows of the graph's tables for the names of bench/synthetic_names.py: the rows that triggers and ingestion
would store for a corpus, loaded with COPY and one statement per table."""

from uuid import UUID

import numpy as np

from bench.synthetic_names import COUNT, NamedProse, entity_type, name
from bench.tenant_rows import ids
from bench.tenants import TenantDatabase
from bench.text_corpus import TextCorpus

DRAFTS = """
create temporary table named as
select number, name, kind, entity, sound, reverse(sound) as ending
from unnest(%s::integer[], %s::text[], %s::text[]) as named (number, name, kind)
cross join lateral (select rag.entity_key(name)) as folded (entity)
cross join lateral (select rag.phonetic_key(entity)) as heard (sound);
"""
NAMING = "create temporary table naming (document_id uuid, ordinal integer, number integer, weight real)"
RELATING = """
create temporary table relating (document_id uuid, ordinal integer, subject integer, type text,
  object integer, confidence real)
"""
SUBJECTS = """
insert into rag.title_entities (org_id, document_id, entity, collection_id, name, weight, sound, ending)
select org_id, id, found.entity, collection_id, found.name, found.weight, heard.sound, reverse(heard.sound)
from rag.documents
cross join lateral rag.title_names(title) as found
cross join lateral (select rag.phonetic_key(found.entity)) as heard (sound)
where org_id = %s
"""
MENTIONS = """
insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, name, kind, surfaces, weight,
  sound, ending)
select %s, document_id, ordinal, entity, %s, name, kind, array[name], weight, sound, ending
from naming
join named using (number)
"""
RELATIONS = """
insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, confidence)
select %s, document_id, ordinal, subject.entity, type, object.entity, %s, confidence
from relating
join named as subject on subject.number = relating.subject
join named as object on object.number = relating.object
"""


def load_graph_rows(tenants: TenantDatabase, corpus: TextCorpus) -> None:
    """Raises TypeError for a set whose documents have no names."""
    if not isinstance(corpus.prose, NamedProse):
        raise TypeError("a shelf of NamedProse is wanted")
    numbers, org_id = list(range(COUNT + 1)), corpus.org.id
    tenants.connection.execute(DRAFTS, [numbers, list(map(name, numbers)), list(map(entity_type, numbers))])
    _draft(tenants, corpus, corpus.prose)
    # Whether its chunk is there need not be asked of every row.
    tenants.connection.execute("set session_replication_role = replica")
    tenants.connection.execute(SUBJECTS, [org_id])
    tenants.connection.execute(MENTIONS, [org_id, org_id])
    tenants.connection.execute(RELATIONS, [org_id, org_id])
    tenants.connection.execute("reset session_replication_role")
    tenants.connection.execute("drop table named, naming, relating")
    tenants.connection.execute("analyze rag.title_entities, rag.mentions, rag.relations")


def _draft(tenants: TenantDatabase, corpus: TextCorpus, prose: NamedProse) -> None:
    documents = [
        UUID(bytes=value.tobytes())
        for value in ids(corpus.org, np.arange(len(corpus.documents), dtype=np.uint64))
    ]
    namings = [
        (document_id, ordinal, naming)
        for number, (document_id, documents) in enumerate(zip(documents, corpus.documents, strict=True))
        for ordinal, naming in enumerate(prose.names.namings(number, len(documents.chunks)))
    ]
    with tenants.connection.cursor() as cursor:
        cursor.execute(NAMING)
        with cursor.copy("copy naming from stdin") as out:
            for document_id, ordinal, naming in namings:
                for named, weight in zip(naming.names, naming.weights, strict=True):
                    out.write_row((document_id, ordinal, named, weight))
        cursor.execute(RELATING)
        with cursor.copy("copy relating from stdin") as out:
            for document_id, ordinal, naming in namings:
                if naming.relation is not None:
                    subject, other, *_ = naming.names
                    out.write_row((document_id, ordinal, subject, naming.relation, other, naming.confidence))
