"""Effect of other tenants' growth on a tenant: its p50 through PostgREST at three sizes of the table.

Small tenants beside 10,000 rows of others; the large tenant with 30,000 rows of others; 300,000 rows of
others. The HNSW index is rebuilt at each size; its build time and size are reported.

The stages are minutes apart, and the machine's load varies. So rag_match alternates with a control, a scan of
a fixed copy of 3,000 chunks, and its time is divided by the control's.
"""

from rich.console import Console

from bench.figures import Figure
from bench.interleaved import Candidate, Score, Workload, run_interleaved
from bench.match_by_tenant_size import OURS
from bench.tenant_rows import Org
from bench.tenants import LARGE, MEDIUM, SMALL, TenantDatabase, small_orgs, tenant_database

QUESTIONS = 150
SMALL_ORG = 250
# Rows of others at each stage, and the tenant that comes with it. A tenant's own rows do not count, but of
# the large tenant's the small ones notice as much.
STAGES: tuple[tuple[int, tuple[Org, ...]], ...] = (
    (10_000, (MEDIUM, SMALL)),
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
TENANTS = (SMALL, MEDIUM, LARGE)
# The limit of the growth of each tenant's p50 from its first stage to the last one.
GOALS = {SMALL: "<= 1.2", MEDIUM: "<= 1.2", LARGE: "<= 2"}


def measure(console: Console) -> list[Figure]:
    figures: list[Figure] = []
    tokens: dict[Org, str] = {}
    scores: dict[tuple[Org, int], dict[str, Score]] = {}
    with tenant_database() as tenants:
        for rows, comers in STAGES:
            tenants.without_index()
            tenants.add([*comers, *additional_orgs(tenants, rows)])
            tokens |= {org: tenants.token(tenants.user(f"growth-{org.number}", [org])) for org in comers}
            figures += index_figures(tenants, rows, tenants.with_index())
            tenants.connection.execute(CONTROL_SQL.format(org=MEDIUM.id).encode())
            tenants.show_functions()
            for org, token in tokens.items():
                workload = Workload.of(token, [org], QUESTIONS, rare=False)
                candidates = {OURS: Candidate(OURS), CONTROL: Candidate(CONTROL)}
                scores[org, rows] = run_interleaved(tenants.postgrest, workload, candidates)
                console.print(f"{org.chunks:,} chunks beside {rows:,}: {format_scores(scores[org, rows])}")
    return figures + [figure for org in TENANTS for figure in times_of(org, scores)]


def times_of(org: Org, scores: dict[tuple[Org, int], dict[str, Score]]) -> list[Figure]:
    """A tenant's p50 at each stage, divided by the growth of the control's since its first stage."""
    stages = [rows for rows, _ in STAGES if (org, rows) in scores]
    first = scores[org, stages[0]]
    figures: list[Figure] = []
    for rows in stages:
        score = scores[org, rows]
        time = score[OURS].p50_ms * first[CONTROL].p50_ms / score[CONTROL].p50_ms
        is_last = rows == stages[-1]
        before, goal = (first[OURS].p50_ms, GOALS[org]) if is_last else (None, None)
        figures.append(Figure(time_name(org, rows), time, "ms", before, goal, format_scores(score)))
    return figures


def time_name(org: Org, rows: int) -> str:
    return f"p50, {org.chunks:,} chunks beside {rows:,}"


def format_scores(scores: dict[str, Score]) -> str:
    ours, control = scores[OURS], scores[CONTROL]
    return f"{ours.p50_ms:.2f} ms, recall {ours.recall:.3f}, control {control.p50_ms:.2f} ms"


def additional_orgs(tenants: TenantDatabase, rows: int) -> list[Org]:
    """Further small orgs, so that there are that many rows of others."""
    known = {LARGE, MEDIUM, SMALL}
    there = [org for org in tenants.orgs if org not in known]
    missing = rows - sum(org.chunks for org in there)
    return small_orgs(missing, missing // SMALL_ORG, first=10 + len(there))


def index_figures(tenants: TenantDatabase, rows: int, seconds: float) -> list[Figure]:
    total = tenants.number("select count(*) from rag.chunks")
    mib = tenants.number("select pg_relation_size('rag.chunks_by_embedding_1536')") / 2**20
    table = tenants.number("select pg_table_size('rag.chunks')") / 2**20
    where = f"{total:,.0f} rows"
    return [
        Figure(f"HNSW build, {where}", seconds, "s"),
        Figure(f"HNSW size, {where}", mib, "MiB"),
        Figure(f"table size, {where}", table, "MiB"),
    ]
