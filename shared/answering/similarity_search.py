"""Similarity search for a text, chunk or document."""

from dataclasses import replace

from shared.answering.routed_search import retrieve
from shared.documents.contents_by_id import hydrate
from shared.errors import NotFound
from shared.retrieval.query.types import SearchMode
from shared.retrieval.types import RoutedResult, SearchRequest
from shared.retrieval.workspace_lookup import locate
from shared.services import Services
from shared.types import Principal, ResultKind, SimilarTo

# The part of a document that the reranker and the highlights get.
SUBJECT_CHARACTERS = 8000


def find_similar(
    services: Services, caller: Principal, request: SearchRequest, subject: SimilarTo, kind: ResultKind
) -> RoutedResult:
    """The subject's id is as the client writes it. Raises NotFound for a subject, workspace or org that the
    caller cannot see, or another RagError."""
    if subject.kind == "text":
        return retrieve(services, caller, request, subject, kind)
    area = locate(services.database, caller, request.workspace, request.org)
    # The subject may be outside the workspace that is searched.
    ids = [(subject.kind, subject.value)]
    contents = hydrate(services.database, caller, area, ids, chunks=False, text=True, whole_org=True)
    if contents.missing:
        raise NotFound(
            "There is no such subject. Check its id.", code="subject_not_found", details={"field": "subject"}
        )
    if contents.documents:
        document = contents.documents[0]
        subject_id, text = document.document_id, document.text or document.title
    else:
        subject_id, text = contents.chunks[0].chunk_id, contents.chunks[0].text or ""
    # A stored subject has a vector and is no question, so the router has nothing to infer.
    mode = SearchMode.NEURAL if request.mode in (SearchMode.AUTO, SearchMode.FAST) else request.mode
    request = replace(request, text=text[:SUBJECT_CHARACTERS], mode=mode, expands=False)
    return retrieve(services, caller, request, SimilarTo(subject.kind, subject_id), kind, area)
