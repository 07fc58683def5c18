"""Questions to the graph, and their figures."""

from collections.abc import Mapping
from typing import Any

import pytest

from bench import graph_search
from bench.question_sets import GRAPH, HYBRID, Timings, search_request
from bench.synthetic_names import EVERYWHERE, NamedProse, name
from bench.tenant_rows import Org
from bench.text_corpus import TextCorpus


@pytest.fixture(scope="module")
def corpus() -> TextCorpus:
    return TextCorpus(Org(1, 0, 10), NamedProse({"the", "of", "a", "and", "in", "to", "is"}), [])


def test_only_questions_about_names_contain_a_name(corpus: TextCorpus):
    kinds = graph_search.kinds(corpus)
    in_all, nameless = (
        graph_search.questions(kinds[kind], 5) for kind in (graph_search.IN_ALL, graph_search.NAMELESS)
    )
    assert all(name(EVERYWHERE) in request for request in in_all)
    assert all(request == request.lower() for request in nameless)
    assert set(kinds) == set(graph_search.GOALS)


def test_graph_search_gets_the_same_request_as_hybrid_search():
    function, body = search_request(GRAPH, "Who?", "[1]", 10)
    other, hybrid = search_request(HYBRID, "Who?", "[1]", 10)
    assert (function, other) == ("rag_graph_search", "rag_search")
    assert body.replace(b'"graph"', b'"hybrid"') == hybrid


def test_a_figure_has_the_share_of_pages_with_graph_results():
    rows: list[Mapping[str, Any]] = [{"graph_score": 0.5}, {"graph_score": 0}]
    timings = {
        HYBRID: Timings([0.01] * 4, [[]] * 4),
        GRAPH: Timings([0.015] * 4, [[dict(row) for row in rows], [dict(rows[1])], [], [dict(rows[0])]]),
    }
    middle, high = graph_search.compare(graph_search.NAMED, timings)
    assert [middle.compared, high.compared] == pytest.approx([1.5, 1.5])
    assert middle.holds
    assert middle.note == "the graph had a part in 50 % of the pages"
