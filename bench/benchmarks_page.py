"""Tables of docs/benchmarks.md from the recorded figures: python -m bench.benchmarks_page.

The text between the tables is written by hand.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from bench import confidence_tables, eval_answers, eval_graph, eval_languages, eval_quality, eval_support
from bench.eval_quality import MEASURE, METHODS
from bench.eval_relations import RESULTS as RELATIONS
from bench.figures import VERDICTS, markdown, markdown_table, read_lines, results, values
from bench.keyword_search import KINDS
from bench.match_by_tenant_size import TENANTS
from bench.peers import SIZES, SYSTEMS
from local import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
TABLE = re.compile(r"<!-- table: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
Rows = list[str]


def match() -> Rows:
    """A row a cell of bench/match_by_tenant_size.py."""
    measured = {result["name"]: result for result in results("match")}
    rows = []
    for cell in (f"{tenant}{rare}" for tenant in TENANTS for rare in ("", ", 1 %")):
        value = {
            name.removesuffix(f", {cell}"): result["value"]
            for name, result in measured.items()
            if name.endswith(f", {cell}")
        }
        page = next(name for name in value if name.startswith("textbook rows"))
        best = measured[f"p50, {cell}"]["baseline"]
        row = (
            cell,
            f"{value['recall']:.3f}",
            f"{100 * value['full pages']:.0f} %",
            f"{value['p50']:.3g} ms",
            f"{best:.3g} ms",
            f"{value['p50'] / best:.2f}",
            f"{value['textbook recall']:.2f}",
            f"{value[page]:.1f}{page.removeprefix('textbook rows')}",
            f"{value['textbook p50']:.3g} ms",
        )
        rows.append(row)
    columns = (
        "the caller's", "recall", "full pages", "p50", "best hand-written", "ratio", "textbook recall",
        "rows", "p50",
    )  # fmt: skip
    return markdown_table(columns, rows)


def quality() -> Rows:
    """A row a way to search, a column a set."""
    measured = read_lines(eval_quality.RESULTS)
    sets = sorted({line["set"] for line in measured})
    value = {(line["set"], line["search"]): line for line in measured}
    columns = (MEASURE, *(f"{name}, {value[name, METHODS[0]]['questions']}" for name in sets))
    rows = [(method, *(f"{value[name, method][MEASURE]:.1f}" for name in sets)) for method in METHODS]
    return markdown_table(columns, rows)


def quality_goals() -> Rows:
    """A row a set: the differences with a goal, and whether all its goals hold."""
    by_set: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results("quality"):
        if match := re.fullmatch(r"(.+), (\w+)(: at most|: mean)?", result["name"]):
            by_set.setdefault(match[2], {})[f"{match[1]}{match[3] or ''}"] = result
    rows = [
        (
            name,
            figure["keyword less BM25: at most"]["note"],
            figure["hybrid less its better leg: at most"]["note"],
            figure["hybrid less its better leg: mean"]["note"].removeprefix("that is "),
            _verdict(figure.values()),
        )
        for name, figure in by_set.items()
    ]
    columns = (MEASURE, "keyword less BM25", "hybrid less its better leg", "better leg", "goals")
    return markdown_table(columns, rows)


def _verdict(of_set: Iterable[dict[str, Any]]) -> str:
    holds = all(result["holds"] is not False for result in of_set)
    return "hold" if holds else VERDICTS[False]


def hybrid() -> Rows:
    """A row a kind of question."""
    by_name = {result["name"]: result for result in results("hybrid")}
    rows = []
    for kind in KINDS:
        both, word = by_name[f"hybrid p50, {kind}"], by_name[f"keyword p50, {kind}"]
        recall = by_name.get(f"keyword recall@10, {kind}")
        row = (
            kind,
            f"{both['baseline']:.3g} ms",
            f"{word['value']:.3g} ms",
            f"{by_name[f'keyword p95, {kind}']['value']:.3g} ms",
            f"{both['value']:.3g} ms",
            f"{both['value'] / both['baseline']:.2f}",
            f"{recall['value']:.3f}" if recall else "",
        )
        rows.append(row)
    columns = ("questions", "rag_match", "by word", "p95", "hybrid", "ratio", "recall@10 by word")
    return markdown_table(columns, rows)


def graph_quality() -> Rows:
    """A row a way to search a corpus, and a system with published rankings of it."""
    rows = []
    for line in read_lines(eval_graph.RESULTS):
        request = f", {line['graph']} of {line['questions']}" if line["search"] == eval_graph.AUTO else ""
        # Published are no more than eight places.
        is_ours = line["p50_ms"] is not None
        row = (
            f"{line['set']}, {line['documents']:,}",
            f"{line['search']}{request}",
            *(f"{line[name]:.1f}" for name in eval_graph.MEASURES),
            line["graph_less_it"] or "",
            f"{line[eval_graph.RANKED]:.1f}" if is_ours else "",
            line["auto_less_it"] or "",
            f"{line['p50_ms']:.3g} ms" if is_ours else "",
        )
        rows.append(row)
    columns = (
        "corpus", "search", *eval_graph.MEASURES, "graph less it, Recall@5", "nDCG@10",
        "auto less it, nDCG@10", "p50",
    )  # fmt: skip
    return markdown_table(columns, rows)


def graph_goals() -> Rows:
    """A row a corpus: the differences with a goal, and whether all its goals hold."""
    by_corpus: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results(eval_graph.PART):
        name, set_name, corpus = result["name"].removesuffix(": at most").rsplit(", ", 2)
        about = set_name if corpus == eval_graph.WHOLE else f"{set_name}, first 780 documents"
        by_corpus.setdefault(about, {})[name] = result
    rows = []
    for about, figure in by_corpus.items():
        gain = figure.get("graph less hybrid, Recall@5")
        share = figure.get("auto's share of the gain, Recall@5")
        router = (figure[f"auto less hybrid, {name}"]["note"] for name in ("nDCG@10", "Recall@5"))
        row = (
            about,
            *(note.partition(";")[0] for note in router),
            gain["note"] if gain else "",
            f"{share['value']:.2f}" if share else "",
            _verdict(figure.values()),
        )
        rows.append(row)
    columns = (
        "set", "auto less hybrid, nDCG@10", "Recall@5", "graph less hybrid, Recall@5", "auto's share of it",
        "goals",
    )  # fmt: skip
    return markdown_table(columns, rows)


def relations() -> Rows:
    columns = ("documents", "right", "two readers agree on", "of the right, read now")
    return markdown_table(columns, (tuple(line.values()) for line in json.loads(RELATIONS.read_text())))


def peers() -> Rows:
    """A row a system, a column a size of org."""
    value = values("peers")
    rows = []
    for system in SYSTEMS:
        cells = [
            f"{value[f'recall, {size}, {system}']:.2f}, {value[f'p50, {size}, {system}']:.3g} ms, "
            f"{value[f'requests, {size}, {system}']:.3g}"
            for size in SIZES
        ]
        ingested = value.get(f"rows, {system}")
        rows.append((system, *cells, f"{ingested:.0f}" if ingested else ""))
    return markdown_table(("recall@10, p50, requests a second", *SIZES, "rows a second"), rows)


TABLES: dict[str, Callable[[], Rows]] = {
    "confidence": confidence_tables.errors,
    "confidence-goals": confidence_tables.goals,
    "answers": confidence_tables.answers,
    "agreement": confidence_tables.agreement,
    "confidence-cases": lambda: confidence_tables.answers(eval_answers.RESULTS_OF_CASES),
    "quality": quality,
    "quality-goals": quality_goals,
    "languages": lambda: eval_languages.rows(read_lines(eval_languages.RESULTS)),
    "graph-quality": graph_quality,
    "graph-goals": graph_goals,
    "relations": relations,
    "support": eval_support.table,
    "match": match,
    "hybrid": hybrid,
    "work": lambda: markdown("work"),
    "put": lambda: markdown("put"),
    "post": lambda: markdown("post"),
    "capacity": lambda: markdown("capacity"),
    "request": lambda: markdown("request"),
    "peers": peers,
    # Of the imports, those of rag-search and of the slowest function.
    "speed": lambda: [
        row
        for row in markdown("http", "cold")
        if "import functions." not in row or "rag_search" in row or "mcp" in row
    ],
    "chat": lambda: markdown("chat"),
}


# The parts of bench/results.jsonl behind a table with another name than its part.
PARTS = {
    "quality-goals": ("quality",),
    "graph-goals": (eval_graph.PART,),
    "graph-quality": (eval_graph.PART,),
    "speed": ("http", "cold"),
}


def measured_at(table: str) -> Rows:
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
