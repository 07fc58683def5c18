"""The most expensive permitted searches of one member, in an org with 14,000 chunks of text
(bench/text_corpus.py), through PostgREST: the longest of some calls of each."""

import json
import random
from time import perf_counter
from typing import Any
from uuid import UUID

import numpy as np
from rich.console import Console

from bench.figures import Figure
from bench.interleaved import connect, post, vector_literal
from bench.keyword_search import COMMON_WORDS, PASSAGE, kinds
from bench.tenant_rows import Org, ids
from bench.tenants import tenant_database
from bench.text_corpus import TextCorpus, index_words, load_corpus

CHUNKS, CALLS = 14_000, 5
TOP_K, LONGEST, GOAL = 300, 10_000, "<= 1000"
# How often the 100 most frequent words are drawn, 5 to 8 of them, and how many conditions a filter has.
COMMON_DRAWS, CONDITIONS = 85, 100


def measure(console: Console, chunks: int = CHUNKS) -> list[Figure]:
    with tenant_database() as tenants:
        corpus = load_corpus(tenants, Org(1, chunks, 300))
        index_words(tenants, corpus)
        tenants.with_index()
        token = tenants.token(tenants.user("costly", [corpus.org]))
        tenants.connection.execute("update rag.settings set open_to_direct_callers = true")
        taken: dict[str, float] = {}
        with connect(tenants.postgrest) as connection:
            for name, (function, body) in requests(corpus).items():
                for _ in range(CALLS):
                    started = perf_counter()
                    post(connection, f"/rpc/{function}", token, json.dumps(body).encode())
                    taken[name] = max(taken.get(name, 0), perf_counter() - started)
                console.print(f"{name}: {taken[name]:.3f} s", highlight=False)
        return [Figure(name, seconds * 1000, "ms", None, GOAL) for name, seconds in taken.items()]


def requests(corpus: TextCorpus) -> dict[str, tuple[str, dict[str, Any]]]:
    """The function and its arguments by name."""
    draws, draw = kinds(corpus), random.Random(7)  # noqa: S311  # not a secret
    common = " ".join(draws[COMMON_WORDS](draw) for _ in range(COMMON_DRAWS))[:LONGEST]
    text = " ".join(draws[PASSAGE](draw) for _ in range(100))[:LONGEST]
    vector = {"query_vector": vector_literal(corpus.org.queries(1)[0]), "top_k": TOP_K}
    metadata = {f"field {number}": {"$ne": number} for number in range(CONDITIONS)}
    # The first chunk's document has the number 0 too.
    numbers = np.arange(CONDITIONS, dtype=np.uint64)
    chunks = [str(UUID(bytes=one.tobytes())) for one in ids(corpus.org, numbers)]
    labels = [f"label {number}" for number in range(CONDITIONS)]
    of_text = {"query_text": text, **vector}
    keyword = {"query_text": common, "mode": "keyword", "top_k": TOP_K}
    judged = {**of_text, "mode": "hybrid", "judged_text": text}
    return {
        "560 common words, keyword": ("rag_search", keyword),
        "560 common words, hybrid": ("rag_search", {"query_text": common, **vector}),
        "10,000 characters, hybrid": ("rag_search", of_text),
        "10,000 characters, judged": ("rag_judged_search", judged),
        "10,000 characters, graph": ("rag_graph_search", of_text),
        "300 nearest with ten neighbours": ("rag_search", {**of_text, "expand_context": 10}),
        "100 conditions $ne": ("rag_search", {**of_text, "filters": {"metadata": metadata}}),
        "100 labels": ("rag_search", {**of_text, "filters": {"labels": labels}}),
        "similar to a document": ("rag_similar", {"document_id": chunks[0], "top_k": TOP_K}),
        "100 chunks with ten neighbours": ("rag_widen", {"chunk_ids": chunks, "neighbours": 10}),
        "names of collections": ("rag_list_names", {}),
        "100 preferred types": ("rag_search", {**of_text, "prefer": labels}),
    }
