"""What can go wrong, and what to do about it."""

from uuid import uuid4

from mnemosyne import APIConnectionError, ConflictError, DocumentFailedError, Mnemosyne, NotFoundError

with Mnemosyne() as client:
    collection = client.collections.create(name=f"errors-{uuid4().hex[:8]}")
    document = client.documents.create_from_text(collection.id, "The kiln is hot.")

    try:
        client.documents.create_from_text(collection.id, "The kiln is hot.")
    except ConflictError as error:
        print(error.code, "it is there already:", error.details["document_id"] == document.id)

    try:
        client.documents.get(str(uuid4()))
    except NotFoundError as error:
        print(error.code, error.status_code)

    broken = client.documents.create(collection.id, ("broken.pdf", b"%PDF-1.7 and no more"))
    try:
        client.documents.wait_until_ready(broken.id, timeout=120)
    except DocumentFailedError as error:
        print("failed:", error.code)

    client.collections.delete(collection.id, cascade=True)

with Mnemosyne(base_url="http://127.0.0.1:9", max_retries=0) as nobody:
    try:
        nobody.health()
    except APIConnectionError as error:
        print(type(error).__name__)
