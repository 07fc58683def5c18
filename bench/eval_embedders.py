"""nDCG@10 by vectors alone of the local models, and of multilingual-e5-small with other prefixes.

    python -m bench.eval_embedders [FOLDER...]

Of bench/datasets/multilingual in each language, and of the folders: each is a labelled set, or holds some
(labelled_sets.py). Documents are chunked for each model; a
document is ranked by its best chunk, among all. Of a set with published rankings the small corpus is used.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console

from bench import eval_languages
from bench.labelled_sets import SMALL, judged
from bench.ranking import by_best_chunk, measures
from shared.calibration.labelled_sets import LabelledSet, sets_in
from shared.ingestion.chunking.chunked_document import ChunkingConfig, chunk_document
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder
from shared.models.minilm import MiniLM
from shared.models.multilingual_e5 import MultilingualE5

MEASURE = "nDCG@10"
# Of the questions of a set.
QUESTIONS = 1000
PREFIXES = ("query: ", "passage: "), ("query: ", "query: "), ("passage: ", "passage: ")
WITHOUT_GRAPH = ChunkingConfig(is_graph_enabled=False)
Vectors = Sequence[Sequence[float]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.eval_embedders", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    labelled_sets = [
        *map(eval_languages.labelled_set, eval_languages.LANGUAGES),
        *(each for folder in parser.parse_args().folders for each in sets_in(folder)),
    ]
    console = Console()
    figures: dict[str, list[float]] = {}
    for labelled_set in labelled_sets:
        for name, figure in evaluate(labelled_set).items():
            figures.setdefault(name, []).append(figure)
            console.print(f"{labelled_set.name}: {name}: {figure:.1f}", highlight=False)
    lines = [
        f"| {MEASURE} | {' | '.join(each.name for each in labelled_sets)} | mean |",
        "|---" * (len(labelled_sets) + 2) + "|",
        *(
            f"| {name} | {' | '.join(f'{figure:.1f}' for figure in [*of_sets, fmean(of_sets)])} |"
            for name, of_sets in figures.items()
        ),
    ]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def evaluate(labelled_set: LabelledSet) -> dict[str, float]:
    """The measure in percent, by the model, and the prefixes of its questions and documents."""
    questions = [item.text for item in judged(labelled_set, QUESTIONS)]
    minilm, e5 = MiniLM(), MultilingualE5()
    names, passages = chunked(labelled_set, minilm)
    figures = {
        minilm.model: quality(
            labelled_set, names, minilm.embed(passages, Role.DOCUMENT), minilm.embed(questions, Role.QUESTION)
        )
    }
    names, passages = chunked(labelled_set, e5)
    of_passages, of_questions = (
        {prefix: e5.embed_prefixed(texts, [prefix] * len(texts)) for prefix in ("query: ", "passage: ")}
        for texts in (passages, questions)
    )
    for question, document in PREFIXES:
        name = f"{e5.model}, {question}for questions, {document}for documents"
        figures[name] = quality(labelled_set, names, of_passages[document], of_questions[question])
    return figures


def chunked(labelled_set: LabelledSet, embedder: Embedder) -> tuple[list[str], list[str]]:
    """The corpus' ids by the passages, and the passages."""
    pairs = [
        (item.id, passage)
        for item in labelled_set.documents[: SMALL if labelled_set.published else None]
        for passage in chunk_document(embedder, item.title, item.text, None, WITHOUT_GRAPH).passages
    ]
    return [name for name, _ in pairs], [passage for _, passage in pairs]


def quality(labelled_set: LabelledSet, names: Sequence[str], passages: Vectors, questions: Vectors) -> float:
    figures = []
    for question, scores in zip(
        judged(labelled_set, QUESTIONS), np.array(questions) @ np.array(passages).T, strict=True
    ):
        ranking = by_best_chunk(names[index] for index in np.argsort(-scores))
        figures.append(measures(ranking, labelled_set.relevant[question.id])[MEASURE])
    return 100 * fmean(figures)


if __name__ == "__main__":
    main()
