"""Tables of docs/benchmarks.md, written between its markers: python -m bench.benchmarks_page.

The text between the tables is written by hand.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from bench import (
    confidence_tables,
    eval_answers,
    eval_graph,
    eval_keyword,
    eval_languages,
    eval_quality,
    eval_relations,
    eval_support,
)
from bench.chart_peers import SIZES, SYSTEMS
from bench.chart_tenants import TENANTS
from bench.eval_quality import MEASURE, METHODS
from bench.figures import markdown, results, values
from bench.question_sets import KINDS
from local import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
TABLE = re.compile(r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
RELATIONS_HEAD = (
    "| documents | right | two readers agree on | of the right, read now |",
    "|---|---|---|---|",
)
FIGURE_HEAD = ("| figure | value | beside | ratio | goal | |", "|---|---|---|---|---|---|")

MATCH_HEAD = (
    "| the caller's | recall | full pages | p50 | best hand-written | ratio | textbook recall | rows | p50 |",
    "|---|---|---|---|---|---|---|---|---|",
)
CUTOVER_HEAD = (
    "| the caller's rows | exact | ef_search 40, recall | 100 | 200 | 400 |",
    "|---|---|---|---|---|---|",
)
HYBRID_HEAD = (
    "| questions | rag_match | by word | p95 | hybrid | ratio | by word, all postings "
    "| recall@10 without them |",
    "|---|---|---|---|---|---|---|---|",
)
KEYWORD_HEAD = (
    "| nDCG@10 | words in a question | questions | BM25 (bm25s) | keyword | difference | goals |",
    "|---|---|---|---|---|---|---|",
)
GRAPH_HEAD = (
    "| questions | hybrid p50 | graph p50 | ratio | hybrid p95 | graph p95 |",
    "|---|---|---|---|---|---|",
)
GRAPHS_HEAD = (
    "| corpus | search | Recall@5 | Recall@8 | All@8 | graph less it, Recall@5 "
    "| nDCG@10 | auto less it, nDCG@10 | p50 |",
    "|---|---|---|---|---|---|---|---|---|",
)
PEERS_HEAD = (
    f"| recall@10, p50, requests a second | {' | '.join(SIZES)} | rows a second |",
    "|---|---|---|---|---|",
)
INDEX_HEAD = ("| questions | documents | 1 client, p50 | 8 clients, p50 |", "|---|---|---|---|")
QUALITY_GOALS_HEAD = (
    "| nDCG@10 | keyword less BM25 | hybrid less its better leg | better leg | goals |",
    "|---|---|---|---|---|",
)
GRAPH_GOALS_HEAD = (
    "| set | auto less hybrid, nDCG@10 | Recall@5 | graph less hybrid, Recall@5 | auto's share of it "
    "| goals |",
    "|---|---|---|---|---|---|",
)
SUPPORT_HEAD = (
    "| sentences | | 100 documents of each set | of | all documents of SQuAD | of |",
    "|---|---|---|---|---|---|",
)


def match() -> list[str]:
    """A row a cell of bench/match_by_tenant_size.py; nothing when it was not measured."""
    measured = results("match")
    rows = [*MATCH_HEAD] if measured else []
    for cell in (f"{tenant}{rare}" for tenant in TENANTS for rare in ("", ", 1 %") if measured):
        value = {
            result["name"].removesuffix(f", {cell}"): result["value"]
            for result in measured
            if result["name"].endswith(f", {cell}")
        }
        page = next(name for name in value if name.startswith("textbook rows"))
        best = next(result["baseline"] for result in measured if result["name"] == f"p50, {cell}")
        cells = (
            cell,
            f"{value['recall']:.3f}",
            f"{value['full pages']:.0%}".replace("%", " %"),
            f"{value['p50']:.3g} ms",
            f"{best:.3g} ms",
            f"{value['p50'] / best:.2f}",
            f"{value['textbook recall']:.2f}",
            f"{value[page]:.1f}{page.removeprefix('textbook rows')}",
            f"{value['textbook p50']:.3g} ms",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def cutover() -> list[str]:
    """A row a size of bench/exact_vs_index.py: the exact scan's time, and each ef_search's with its
    recall."""
    sizes: dict[str, list[str]] = {}
    for result in results("cutover"):
        size = result["name"].partition(", ")[2]
        cells = sizes.setdefault(size, [size, f"{result['baseline']:.3g} ms"])
        cells.append(f"{result['value']:.3g} ms, {result['note'].removeprefix('recall ')}")
    rows = [*CUTOVER_HEAD] if sizes else []
    return rows + [f"| {' | '.join(cells)} |" for cells in sizes.values()]


def quality() -> list[str]:
    """A row a way to search, a column a set."""
    measured = eval_quality.results()
    sets = sorted({line["set"] for line in measured})
    value = {(line["set"], line["search"]): line for line in measured}
    rows = []
    if sets:
        counted = [f"{name}, {value[name, METHODS[0]]['questions']}" for name in sets]
        rows = [f"| {MEASURE} | {' | '.join(counted)} |", f"|---{'|---' * len(sets)}|"]
    for method in METHODS if sets else ():
        cells = (f"{value[name, method][MEASURE]:.1f}" for name in sets)
        rows.append(f"| {' | '.join([method, *cells])} |")
    return rows


def quality_goals() -> list[str]:
    """A row a set: the differences with a goal, and whether all its goals hold."""
    by_set: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results("quality"):
        if match := re.fullmatch(r"(.+), (\w+)(: at most|: mean)?", result["name"]):
            by_set.setdefault(match[2], {})[f"{match[1]}{match[3] or ''}"] = result
    rows = [*QUALITY_GOALS_HEAD] if by_set else []
    for name, figure in by_set.items():
        cells = (
            name,
            figure["keyword less BM25: at most"]["note"],
            figure["hybrid less its better leg: at most"]["note"],
            figure["hybrid less its better leg: mean"]["note"].removeprefix("that is "),
            _verdict(figure.values()),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _verdict(of_set: Iterable[dict[str, Any]]) -> str:
    missed = [result["name"] for result in of_set if result["holds"] is False]
    return "hold" if not missed else "**falls short**"


def keyword_quality() -> list[str]:
    """A row a set and length of its questions; nothing when it was not measured."""
    measured = eval_keyword.results()
    rows = [*KEYWORD_HEAD] if measured else []
    for line in measured:
        cells = (
            line["set"],
            line["words"],
            str(line["questions"]),
            f"{line[eval_quality.BASELINE]:.1f}",
            f"{line[eval_quality.KEYWORD]:.1f}",
            line["difference"],
            "hold" if eval_keyword.holds(line) else "**falls short**",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def hybrid() -> list[str]:
    """A row a kind of question; nothing when it was not measured."""
    by_name = {result["name"]: result for result in results("hybrid")}
    rows = [*HYBRID_HEAD] if by_name else []
    for kind in KINDS if by_name else ():
        both, word = by_name[f"hybrid p50, {kind}"], by_name[f"keyword p50, {kind}"]
        whole = by_name.get(f"keyword p50 reading all postings, {kind}")
        recall = by_name.get(f"keyword recall@10, {kind}")
        cells = (
            kind,
            f"{both['baseline']:.3g} ms",
            f"{word['value']:.3g} ms",
            f"{by_name[f'keyword p95, {kind}']['value']:.3g} ms",
            f"{both['value']:.3g} ms",
            f"{both['value'] / both['baseline']:.2f}",
            f"{whole['value']:.3g} ms" if whole else "",
            f"{recall['value']:.3f}" if recall else "",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def graph() -> list[str]:
    """A row a kind of question; nothing when it was not measured."""
    by_name = {result["name"]: result for result in results("graph")}
    rows = [*GRAPH_HEAD] if by_name else []
    for name, middle in by_name.items():
        if not name.startswith("graph p50, "):
            continue
        kind, high = name.removeprefix("graph p50, "), by_name[name.replace("p50", "p95")]
        cells = (
            kind,
            f"{middle['baseline']:.3g} ms",
            f"{middle['value']:.3g} ms",
            f"{middle['value'] / middle['baseline']:.2f}",
            f"{high['baseline']:.3g} ms",
            f"{high['value']:.3g} ms",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def graph_quality() -> list[str]:
    """A row a way to search a corpus, and a system with published rankings of it."""
    measured = eval_graph.results()
    rows = [*GRAPHS_HEAD] if measured else []
    for line in measured:
        request = f", {line['graph']} of {line['questions']}" if line["search"] == eval_graph.AUTO else ""
        # Published are no more than eight places.
        is_ours = line["p50_ms"] is not None
        cells = (
            f"{line['set']}, {line['documents']:,}",
            f"{line['search']}{request}",
            *(f"{line[name]:.1f}" for name in eval_graph.MEASURES),
            line["graph_less_it"] or "",
            f"{line[eval_graph.RANKED]:.1f}" if is_ours else "",
            line["auto_less_it"] or "",
            f"{line['p50_ms']:.3g} ms" if is_ours else "",
        )
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return rows


def relations() -> list[str]:
    return [*RELATIONS_HEAD, *(f"| {' | '.join(line.values())} |" for line in eval_relations.results())]


def peers() -> list[str]:
    """A row a system, a column a size of org; nothing when it was not measured."""
    value = values("peers")
    rows = [*PEERS_HEAD] if value else []
    for system in SYSTEMS if value else ():
        cells = [
            f"{value[f'recall, {size}, {system}']:.2f}, {value[f'p50, {size}, {system}']:.3g} ms, "
            f"{value[f'requests, {size}, {system}']:.3g}"
            for size in SIZES
        ]
        ingested = value.get(f"rows, {system}")
        rows.append(
            f"| {' | '.join([system, *cells, f'{ingested:.0f}' if ingested else ''])} |".replace("  ", " ")
        )
    return rows


def graph_goals() -> list[str]:
    """A row a corpus: the differences with a goal, and whether all its goals hold."""
    by_corpus: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results(eval_graph.PART):
        name, set_name, corpus = result["name"].removesuffix(": at most").rsplit(", ", 2)
        about = set_name if corpus == eval_graph.WHOLE else f"{set_name}, first 780 documents"
        by_corpus.setdefault(about, {})[name] = result
    rows = [*GRAPH_GOALS_HEAD] if by_corpus else []
    for about, figure in by_corpus.items():
        gain = figure.get("graph less hybrid, Recall@5")
        share = figure.get("auto's share of the gain, Recall@5")
        cells = (
            about,
            *(
                figure[f"auto less hybrid, {name}"]["note"].partition(";")[0]
                for name in ("nDCG@10", "Recall@5")
            ),
            gain["note"] if gain else "",
            f"{share['value']:.2f}" if share else "",
            _verdict(figure.values()),
        )
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return rows


def index() -> list[str]:
    """A row a way to ask and a size; nothing when it was not measured."""
    rows: dict[str, list[str]] = {}
    for result in results("index"):
        question, _, who = result["name"].rpartition(", ")
        if result["name"].startswith("/") and who in ("1 client", "8 clients"):
            method, _, size = question.partition(", ")
            cells = rows.setdefault(question, [method, size.removesuffix(" documents")])
            cells.append(f"{result['value']:.3g} ms")
    return [*(INDEX_HEAD if rows else ()), *(f"| {' | '.join(cells)} |" for cells in rows.values())]


def figures(*parts: str, omit: Callable[[str], bool] = lambda row: False) -> list[str]:
    """A row a figure of these parts."""
    return [*FIGURE_HEAD, *(row for part in parts for row in markdown(part) if not omit(row))]


TABLES: dict[str, Callable[[], list[str]]] = {
    "confidence": confidence_tables.errors,
    "confidence-goals": confidence_tables.goals,
    "answers": confidence_tables.answers,
    "agreement": confidence_tables.agreement,
    "confidence-cases": lambda: confidence_tables.answers(eval_answers.RESULTS_OF_CASES),
    "quality": quality,
    "quality-goals": quality_goals,
    "keyword": keyword_quality,
    "languages": lambda: eval_languages.rows(eval_languages.results()),
    "graph-quality": graph_quality,
    "graph-goals": graph_goals,
    "relations": relations,
    "graph": graph,
    "graph-figures": lambda: figures("graph", omit=lambda row: row.startswith("| graph p")),
    "support": lambda: [*SUPPORT_HEAD, *eval_support.table()],
    "match": match,
    "cutover": cutover,
    "growth": lambda: figures("growth", "ingest"),
    "hybrid": hybrid,
    "index": index,
    "index-figures": lambda: figures(
        "index", omit=lambda row: row.startswith("| /") and "slowest" not in row
    ),
    "search": lambda: figures("search"),
    "work": lambda: figures("work"),
    "embed": lambda: figures("embed"),
    "put": lambda: figures("put"),
    "change": lambda: figures("change"),
    "post": lambda: figures("post"),
    "capacity": lambda: figures("capacity"),
    "bulk": lambda: figures("bulk"),
    "request": lambda: figures("request"),
    "peers": peers,
    "peers-figures": lambda: figures("peers", omit=lambda row: not row.startswith("| rows")),
    "speed": lambda: figures("http", "load", "cold", "memory"),
    "chat": lambda: figures("chat"),
    "clients": lambda: figures("playground", "sdk"),
}


# The parts of bench/results.jsonl behind a table with another name than its part.
PARTS = {
    "quality-goals": ("quality",),
    "graph-goals": (eval_graph.PART,),
    "graph-quality": (eval_graph.PART,),
    "graph-figures": ("graph",),
    "growth": ("growth", "ingest"),
    "index-figures": ("index",),
    "peers-figures": ("peers",),
    "speed": ("http", "load", "cold", "memory"),
    "clients": ("playground", "sdk"),
}


def measured_at(table: str) -> list[str]:
    """The line below a table: day and commit of each part, where they are recorded."""
    parts = PARTS.get(table, (table,))
    runs: dict[str, list[str]] = {}
    for part in parts:
        for machine in {result["machine"]["commit"]: result["machine"] for result in results(part)}.values():
            run = f"{machine['measured_at'][:10]} at `{machine['commit']}`"
            runs.setdefault(run, []).append(part)
    texts = [f"{run} ({', '.join(of_run)})" if len(parts) > 1 else run for run, of_run in runs.items()]
    return [f"\nMeasured {'; '.join(texts)}."] if runs else []


def page(text: str) -> str:
    """The page with present figures. Raises KeyError for a marker without a table."""

    def block(marker: re.Match[str]) -> str:
        name = marker[1]
        return "\n".join([f"<!-- table: {name} -->\n", *TABLES[name](), *measured_at(name), "\n<!-- end -->"])

    return TABLE.sub(block, text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
