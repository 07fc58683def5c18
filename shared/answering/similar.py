"""What is most like something: a text, or what is already here, whose own text and vector are compared."""

from dataclasses import replace

from shared.answering.routed_search import retrieve
from shared.documents.contents import hydrate
from shared.errors import NotFound
from shared.retrieval.query.types import SearchMode
from shared.retrieval.types import RoutedResult, SearchRequest
from shared.retrieval.workspace import locate
from shared.services import Services
from shared.types import Principal, Result, SimilarTo

# Of a document as much as a reranker and a highlight are for.
SUBJECT_CHARACTERS = 8000


def find_similar(
    core: Services, caller: Principal, request: SearchRequest, subject: SimilarTo, result: Result
) -> RoutedResult:
    """The subject's id as its caller writes it. Raises NotFound for a subject, a workspace or an org that the
    caller does not see, or a RagError."""
    if subject.kind == "text":
        return retrieve(core, caller, request, subject, result)
    place = locate(core.database, caller, request.workspace, request.org)
    asked = [(subject.kind, subject.value)]
    # The subject may stand outside of where its like is looked for.
    found = hydrate(core.database, caller, place, asked, chunks=False, text=True, whole_org=True)
    if found.missing:
        raise NotFound("There is no such subject.", code="subject_not_found", details={"field": "subject"})
    if found.documents:
        known, text = found.documents[0].document_id, found.documents[0].text or found.documents[0].title
    else:
        known, text = found.chunks[0].chunk_id, found.chunks[0].text or ""
    # Its meaning is known, and it asks for nothing that a router could read.
    way = SearchMode.NEURAL if request.way in (SearchMode.AUTO, SearchMode.FAST) else request.way
    plain = replace(request, text=text[:SUBJECT_CHARACTERS], way=way, expands=False)
    return retrieve(core, caller, plain, SimilarTo(subject.kind, known), result, place)
