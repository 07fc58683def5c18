"""Search, and answers from its matches.

    authenticate -> limit -> embed -> match -> judge -> generate

The first two steps are dependencies of every handler (api/authentication.py). `search` is embed and match,
`search_and_judge` also judges, and `answer` goes on, where confidence allows, to generate.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool

from shared.config import Settings
from shared.errors import GenerationFailed, GenerationRefused, InvalidRequest
from shared.generation.cited_documents import cite, with_snippets
from shared.generation.confidence import (
    JUDGED_MATCHES,
    after_abstention,
    after_check,
    after_conflict,
    after_indirect,
    after_unmentioned,
    judge,
    with_named_value,
    without_best_passage,
)
from shared.generation.confidence_features import features_of
from shared.generation.contradictions import contradictions
from shared.generation.extractive.answer import MODEL as EXTRACTIVE
from shared.generation.generators import Generation, GenerationRequest, Generator, collect
from shared.generation.grounding.types import CheckResult, Verdict
from shared.generation.named_value import names_value
from shared.generation.names_missing_in_passages import missing_names
from shared.generation.prompt import DEFAULT_SAMPLING, chat_request
from shared.generation.refusal_texts import missing_note
from shared.generation.unmentioned_word import replaced_version, unmentioned_word
from shared.models.reranking import Reranker, rerank
from shared.retrieval.chunk_search import match, widen
from shared.retrieval.chunk_search import similar as match_similar
from shared.retrieval.identifier_lookup import match_identifier, may_be_identifier, with_exact_names
from shared.services import Services
from shared.tracing import milliseconds_since, step
from shared.types import (
    Answer,
    Confidence,
    Filters,
    GeneratedText,
    JudgedSearch,
    Judgement,
    Match,
    Mode,
    Principal,
    Query,
    QueryEmbedding,
    ResultKind,
    Sampling,
    SearchResult,
    SimilarTo,
)

# The least number of matches that a reranker gets.
RERANK_CANDIDATES = 50


def search(services: Services, caller: Principal, query: Query, judged: Query | None = None) -> SearchResult:
    """The caller's best matches. `judged`: a confidence query with the same text and filters, whose matches
    the result has in `judged` if one call of the database returns both. Raises a RagError."""
    started = time.perf_counter()
    if judged and not _share_a_call(services, query, judged):
        judged = None
    models = [embedder.model for embedder in services.embedders]
    result = match_identifier(services.database, caller, models, query)
    if result is None:
        is_reranked = _is_reranked(services, query)
        result = (_match_and_rerank if is_reranked else _match)(services, caller, query, judged)
    return replace(result, milliseconds=milliseconds_since(started))


def confidence_query(text: str, filters: Filters, rerank: bool | None = None) -> Query:
    """The search whose matches confidence is judged by, the same in every API: hybrid, without an API's own
    mode, number of matches and inferences from the question. `rerank`: that of the request."""
    return Query(text, JUDGED_MATCHES, filters, Mode.HYBRID, rerank)


def search_and_judge(
    services: Services, caller: Principal, query: Query, redact: Callable[[Match], Match] | None = None
) -> JudgedSearch:
    """Embed, match and judge: what every API calls that answers. `redact`: changes the matches before they
    are judged and answered from. Raises a RagError."""
    result = _search_for_answer(services, caller, query)
    matches, judged = (
        tuple(map(redact, each)) if redact else each for each in (result.matches, result.judged)
    )
    judgement = judge_matches(services, caller, judged, query.text, matches=matches)
    return JudgedSearch(matches, judgement, result.vector, result.graph)


def _search_for_answer(services: Services, caller: Principal, query: Query) -> SearchResult:
    """The caller's best matches and, in `judged`, those of the confidence query, empty where nothing matches
    the caller's. One search if both queries are the same, and else one call of the database, except for
    identifiers. Raises a RagError."""
    judged = confidence_query(query.text, query.filters, query.rerank)
    if query.top_k <= judged.top_k and replace(query, top_k=judged.top_k) == judged:
        result = search(services, caller, judged)
        return replace(result, matches=result.matches[: query.top_k], judged=result.matches)
    result = search(services, caller, query, judged=judged)
    if result.judged or not result.matches:
        return result
    return replace(result, judged=search(services, caller, judged).matches)


async def answer(
    services: Services,
    caller: Principal,
    query: Query,
    sampling: Sampling = DEFAULT_SAMPLING,
    rule: Callable[[JudgedSearch, Settings], JudgedSearch] | None = None,
) -> Answer:
    """An answer with citations, or, below medium confidence, the citations alone. `rule`: changes the
    confidence before it is used. Raises a RagError."""
    started = time.perf_counter()
    searched = await run_in_threadpool(search_and_judge, services, caller, query)
    if rule:
        searched = rule(searched, services.settings)
    return await write_answer(services, query, searched, sampling, started)


async def write_answer(
    services: Services,
    query: Query,
    searched: JudgedSearch,
    sampling: Sampling = DEFAULT_SAMPLING,
    started: float | None = None,
) -> Answer:
    """Generate and check: the answer from the matches of a search. `started`: the time.perf_counter() from
    which the answer's time counts, by default now. Raises a RagError."""
    started = time.perf_counter() if started is None else started
    matches, judgement, citations = searched.matches, searched.judgement, cite(searched.matches)
    generation = generate(
        services.generator,
        judgement,
        GenerationRequest(
            query.text,
            matches,
            citations,
            lambda: chat_request(
                query.text, matches, services.generator.model, services.settings.rag_context_tokens, sampling
            ),
            vector=searched.vector,
        ),
    )
    try:
        generated = await collect(generation)
    except GenerationRefused as refused:
        # The caller chose neither the model nor the messages.
        if type(refused) is GenerationRefused:
            raise GenerationFailed(log_reason=refused.log_reason) from refused
        raise GenerationFailed(str(refused), code=refused.code, log_reason=refused.log_reason) from refused
    if generated:
        judgement = await run_in_threadpool(judge_draft, judgement, generated, query.text, matches)
    draft = None if generated and generated.is_abstention else generated
    if draft:
        note = missing_note(query.text, judgement)
        text = "\n\n".join(filter(None, (note, draft.text, *judgement.contradictions)))
        draft = replace(draft, text=text)
        citations = with_snippets(citations, draft.snippets)
    return Answer(
        matches, judgement, citations, draft, datetime.now(UTC), milliseconds_since(started), generated
    )


async def generate(generator: Generator, judgement: Judgement, request: GenerationRequest) -> Generation:
    """The generator's text; nothing where confidence is low. Raises as Generator.write."""
    if judgement.confidence is Confidence.LOW:
        return
    with step("generate"):
        async with aclosing(generator.write(request)) as parts:
            async for part in parts:
                yield part


def similar(
    services: Services, caller: Principal, subject: SimilarTo, query: Query, kind: ResultKind
) -> SearchResult:
    """The chunks most similar to the subject, whose text the query has, or documents by their best chunk.
    Raises a RagError, NotFound for a subject that the caller cannot see."""
    started = time.perf_counter()
    reranker = services.reranker if _is_reranked(services, query) else None
    wider = replace(query, top_k=max(query.top_k, RERANK_CANDIDATES)) if reranker else query
    # A stored subject is compared with embeddings of its own model.
    is_text = subject.kind == "text"
    embeddings = _embed(services, caller, query) if is_text else (QueryEmbedding(services.embedder.model),)
    with step("match"):
        result = match_similar(services.database, caller, subject, embeddings, wider, kind)
    if reranker:
        result = _rerank(reranker, query, result)
    matches = result.matches[: query.top_k]
    return replace(result, matches=matches, milliseconds=milliseconds_since(started))


def judge_matches(
    services: Services,
    caller: Principal,
    judged: Sequence[Match],
    question: str,
    *,
    matches: Sequence[Match] = (),
) -> Judgement:
    """The confidence that the judged matches answer the question. `matches`: those that answer; `because`
    says if they lack the best passage, and the names that they contain are not `missing`. Reads the
    calibration from the database once a minute."""
    with step("judge"):
        judged = with_exact_names(judged, question)
        model = judged[0].model if judged else services.embedder.model
        is_reranked = any(match.relevance is not None for match in judged)
        calibration = services.calibration(caller, model, is_reranked=is_reranked)
        features = features_of(question, judged, calibration.coverage_weight)
        judgement = judge(features, judged, calibration)
        is_low = judgement.confidence is Confidence.LOW and not judgement.missing
        if is_low and names_value(question, judged):
            judgement = with_named_value(judgement)
        if features.best and matches and not any(_contains(match, features.best) for match in matches):
            judgement = without_best_passage(judgement)
        if not judgement.missing:
            return judgement
        missing = missing_names(question, matches)
        return replace(judgement, missing=tuple(name for name in judgement.missing if name in missing))


def judge_draft(
    judgement: Judgement,
    draft: GeneratedText,
    question: str,
    matches: Sequence[Match],
    checked: Sequence[CheckResult] | None = None,
) -> Judgement:
    """The judgement, lowered where the model abstained, documents conflict, or a sentence of the model has no
    support in the matches. `checked`: the answer's sentences, if they were checked before."""
    if draft.is_abstention:
        return after_abstention(judgement, is_extractive=draft.model == EXTRACTIVE)
    if draft.model == EXTRACTIVE:
        judgement = after_conflict(judgement) if draft.has_conflict else judgement
        judgement = after_indirect(judgement) if draft.is_indirect else judgement
        if other := replaced_version(question, draft):
            return after_unmentioned(judgement, other, names_another=True)
        # A hint at medium that has no other.
        is_unexplained = judgement.confidence is Confidence.MEDIUM and not judgement.missing
        word = unmentioned_word(question, draft, matches) if is_unexplained else None
        return after_unmentioned(judgement, word) if word else judgement
    if checked is None:
        # A search checks no answer, and the checker's patterns take a tenth of its import.
        from shared.generation.grounding.sentence_checker import check_text

        checked = check_text(draft.text, matches)
    if notes := contradictions(question, matches, checked):
        judgement = after_conflict(judgement, notes)
    return after_check(
        judgement, tuple(result.text for result in checked if result.verdict is Verdict.UNSUPPORTED)
    )


def _share_a_call(services: Services, query: Query, judged: Query) -> bool:
    is_reranked = _is_reranked(services, query)
    return not may_be_identifier(query) and is_reranked == _is_reranked(services, judged)


def _match_and_rerank(
    services: Services, caller: Principal, query: Query, judged: Query | None
) -> SearchResult:
    if services.reranker is None:
        return replace(_match(services, caller, query, judged), rerank_failed=True)
    # A reranker gets more matches than the caller asked for, and without their neighbours.
    wider = replace(query, top_k=max(query.top_k, RERANK_CANDIDATES), neighbours=0)
    wider_judged = judged and replace(judged, top_k=RERANK_CANDIDATES)
    result = _rerank(services.reranker, query, _match(services, caller, wider, wider_judged))
    matches = result.matches[: query.top_k]
    if query.neighbours:
        with step("match"):
            matches = widen(services.database, caller, matches, query.neighbours)
    return replace(result, matches=matches, judged=result.judged[:JUDGED_MATCHES])


def _is_reranked(services: Services, query: Query) -> bool:
    """Raises InvalidRequest for a query with a half-life and a reranker, which are two orders."""
    if query.half_life_days is None:
        return services.settings.rag_rerank_enabled if query.rerank is None else query.rerank
    if query.rerank:
        raise InvalidRequest("A reranker ignores dates: omit either rerank or the half-life.")
    return False


def _rerank(reranker: Reranker, query: Query, result: SearchResult) -> SearchResult:
    with step("rerank"):
        return rerank(reranker, query.text, result)


def _match(services: Services, caller: Principal, query: Query, judged: Query | None) -> SearchResult:
    embeddings = _embed(services, caller, judged or query)
    with step("match"):
        result = match(services.database, caller, embeddings, query, judged)
    return replace(result, vector=embeddings[0].vector)


def _embed(services: Services, caller: Principal, query: Query) -> tuple[QueryEmbedding, ...]:
    if query.mode is Mode.KEYWORD:
        return tuple(QueryEmbedding(embedder.model) for embedder in services.embedders)
    with step("embed"):
        return tuple(
            QueryEmbedding(embedder.model, services.query_embeddings.embed(embedder, caller, query.text))
            for embedder in services.embedders
        )


def _contains(match: Match, other: Match) -> bool:
    """Whether the match is the other's chunk, or has its text among that of its neighbours."""
    is_within = match.span[0] <= other.span[0] and other.span[1] <= match.span[1]
    return match.chunk_id == other.chunk_id or (is_within and match.document_id == other.document_id)
