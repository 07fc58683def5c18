"""Labelled sets ingested for ann."""

from typing import Any

from bench.labelled_sets import IngestedSet
from shared.calibration.labelled_sets import LabelledSet
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.conftest import People
from tests.ingestion import ingest


def ingested(services: Services, people: People, labelled: LabelledSet, **more: Any) -> IngestedSet:
    """The set, and its documents' names by their ids."""
    names, database, ann = dict[str, str](), services.database, people.ann.principal
    for item in labelled.documents:
        document = NewDocument(item.title, item.text, external_id=item.id, lang="en")
        names[ingest(database, services.embedder, ann, document).document_id] = item.id
    return IngestedSet(services, ann, names, len(names), **more)
