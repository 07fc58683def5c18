"""What the graph adds, told from rankings by hand."""

from pathlib import Path

from bench import eval_graph
from bench.eval_graph import AUTO, GRAPH, HYBRID, SMALL, WHOLE, CorpusRuns, GraphRun
from bench.figures import read_lines
from shared.calibration.labelled_sets import Item, LabelledSet

RELEVANT = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}
QUESTIONS = [Item("q1", "Who?"), Item("q2", "What?"), Item("q3", "Nobody knows?")]


def run(**rankings: list[str]) -> GraphRun:
    results = GraphRun(seconds=[0.01])
    for question, ranking in rankings.items():
        results.mark(question, ranking, RELEVANT[question])
    return results


def measured(corpus: str, name: str = "two") -> CorpusRuns:
    worse = run(q1=["a", "x", "y", "z", "v", "b"], q2=["x"])
    better = run(q1=["a", "b"], q2=["c"])
    runs = {HYBRID: worse, GRAPH: better, AUTO: better}
    theirs = {"theirs": GraphRun(worse.by_question)} if corpus == SMALL else {}
    return CorpusRuns(name, corpus, 10, 12, runs, theirs)


def test_published_rankings_count_for_the_sampled_questions():
    second = ["b", "b", "b", "b", "?Not a title", "a"]
    labelled_set = LabelledSet("two", [], QUESTIONS, RELEVANT, {"theirs": {"q1": second}})
    ranking = eval_graph.published(labelled_set, 10)["theirs"]
    assert ranking.of("Recall@5") == {"q1": 50.0, "q2": 0.0}
    assert ranking.mean("All@8") == 50


def test_goals_apply_to_the_small_corpus_and_to_the_gain_over_the_whole_corpus():
    name = next(iter(eval_graph.GAINS))
    of_all = [measured(SMALL, name), measured(WHOLE, name), measured(WHOLE)]
    figures = {figure.name: figure for figure in eval_graph.goals(of_all)}
    assert figures[f"graph Recall@5, {name}, small"].holds is True
    assert figures[f"graph less hybrid, Recall@5, {name}, small"].goal is None
    assert figures["graph less hybrid, Recall@5, two, whole"].goal is None
    assert figures[f"graph less hybrid, Recall@5, {name}, whole"].holds is True
    assert figures[f"auto's share of the gain, Recall@5, {name}, whole"].holds is True
    assert figures["auto less hybrid, nDCG@10, two, whole: at most"].holds is True


def test_a_router_that_keeps_half_of_the_gain_misses_its_goal():
    hybrid, graph, auto = run(q1=["x"], q2=["x"]), run(q1=["a", "b"], q2=["c"]), run(q1=["a"], q2=["x"])
    runs = {HYBRID: hybrid, GRAPH: graph, AUTO: auto}
    goals = eval_graph.goals([CorpusRuns("two", WHOLE, 10, 12, runs, {})])
    figures = {figure.name: figure for figure in goals}
    share = figures["auto's share of the gain, Recall@5, two, whole"]
    assert (share.value, share.holds) == (0.25, False)


def test_a_router_that_always_loses_misses_its_goals():
    better, worse = run(q1=["a", "b"], q2=["c"]), run(q1=["x"], q2=["x"])
    figures = eval_graph.goals([CorpusRuns("two", WHOLE, 10, 12, {HYBRID: better, AUTO: worse}, {})])
    assert [figure.holds for figure in figures] == [False, False]


def test_new_results_replace_results_of_the_same_set(tmp_path: Path):
    path = tmp_path / "graph.jsonl"
    eval_graph.write([measured(WHOLE)], path)
    eval_graph.write([measured(SMALL), measured(WHOLE)], path)
    lines = read_lines(path)
    assert [(line["corpus"], line["search"]) for line in lines] == [
        (SMALL, HYBRID), (SMALL, GRAPH), (SMALL, AUTO), (SMALL, "theirs"),
        (WHOLE, HYBRID), (WHOLE, GRAPH), (WHOLE, AUTO),
    ]  # fmt: skip
    assert lines[3]["p50_ms"] is None
    assert lines[0]["graph_less_it"] == lines[3]["graph_less_it"] == "+75.0 [+50.0, +100.0]"
    assert lines[1]["graph_less_it"] is lines[3]["auto_less_it"] is None
    assert lines[1]["auto_less_it"] == "+0.0 [+0.0, +0.0]"
