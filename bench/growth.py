"""What a tenant notices of the others' growth: its p50 through PostgREST while their rows become many more.

Three stages of one table: the small tenants with 10,000 rows of others; the large tenant comes, with 30,000
rows of others; then 300,000. The HNSW index is made anew at each: its build time and size are told as well.

The stages are minutes apart, and what else the machine does differs. So rag_match is asked in turns with a
control, a scan of a copy of 3,000 chunks that never grows, and its time is taken in the control's.
"""

from rich.console import Console

from bench.contest import Contender, Paper, Score, contest
from bench.figures import Figure
from bench.match import OURS
from bench.rows import Org
from bench.tenants import LARGE, MIDDLING, SMALL, Tenants, others, tenants

QUESTIONS = 150
SMALL_ORG = 250
# Rows of others at each stage, and who comes with it. Nobody's own rows count among the others', but of the
# large tenant's the small ones notice as much.
STAGES: tuple[tuple[int, tuple[Org, ...]], ...] = (
    (10_000, (MIDDLING, SMALL)),
    (30_000, (LARGE,)),
    (300_000, ()),
)
CONTROL = "growth_control"
CONTROL_SQL = """
create table if not exists public.growth_frozen as
  select id, embedding from rag.chunks where org_id = '{org}';
revoke all on public.growth_frozen from anon, authenticated;
grant select on public.growth_frozen to authenticated;
create or replace function public.growth_control(query_vector extensions.halfvec(1536), top_k integer)
returns table (chunk_id uuid) language sql stable set search_path = ''
as $$
  select nearest.id from (
    select id, (embedding operator(extensions.<=>) query_vector) + 0 as distance
    from public.growth_frozen order by distance limit top_k
  ) as nearest;
$$;
"""
# From which stage to the last the p50 may grow so much.
GOALS = ((SMALL, 10_000, "<= 1.2"), (MIDDLING, 10_000, "<= 1.2"), (LARGE, 30_000, "<= 2"))


def measure(console: Console) -> list[Figure]:
    figures: list[Figure] = []
    tokens: dict[Org, str] = {}
    scores: dict[tuple[Org, int], dict[str, Score]] = {}
    with tenants() as made:
        for rows, comers in STAGES:
            made.without_index()
            made.add([*comers, *more(made, rows)])
            tokens |= {org: made.token(made.user(f"growth-{org.number}", [org])) for org in comers}
            figures += of_the_index(made, rows, made.with_index())
            made.connection.execute(CONTROL_SQL.format(org=MIDDLING.id).encode())
            made.show_functions()
            for org, token in tokens.items():
                paper = Paper.of(token, [org], QUESTIONS, rare=False)
                contenders = {OURS: Contender(OURS), CONTROL: Contender(CONTROL)}
                scores[org, rows] = contest(made.postgrest, paper, contenders)
                console.print(f"{org.chunks:,} chunks beside {rows:,}: {told(scores[org, rows])}")
    last = STAGES[-1][0]
    for org, first, goal in GOALS:
        before, after = scores[org, first], scores[org, last]
        name = f"p50, {org.chunks:,} chunks beside {last:,}, and beside {first:,}"
        note = f"at first {told(before)}; at last {told(after)}"
        slower = after[CONTROL].p50_ms / before[CONTROL].p50_ms
        figures.append(Figure(name, after[OURS].p50_ms / slower, "ms", before[OURS].p50_ms, goal, note))
    return figures


def told(scores: dict[str, Score]) -> str:
    ours, control = scores[OURS], scores[CONTROL]
    return f"{ours.p50_ms:.2f} ms, recall {ours.recall:.3f}, control {control.p50_ms:.2f} ms"


def more(made: Tenants, rows: int) -> list[Org]:
    """Further small orgs, so that there are that many rows of others."""
    known = {LARGE, MIDDLING, SMALL}
    there = [org for org in made.orgs if org not in known]
    missing = rows - sum(org.chunks for org in there)
    return others(missing, missing // SMALL_ORG, first=10 + len(there))


def of_the_index(made: Tenants, rows: int, seconds: float) -> list[Figure]:
    total = made.number("select count(*) from rag.chunks")
    mib = made.number("select pg_relation_size('rag.chunks_by_embedding')") / 2**20
    table = made.number("select pg_table_size('rag.chunks')") / 2**20
    where = f"{total:,.0f} rows"
    return [
        Figure(f"HNSW build, {where}", seconds, "s"),
        Figure(f"HNSW size, {where}", mib, "MiB"),
        Figure(f"table size, {where}", table, "MiB"),
    ]
