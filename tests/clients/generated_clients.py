"""Calls with the clients that openapi-python-client generates, in an environment without the project.

The arguments are the folder of the clients, the deployment's address, a credential. It prints the
status and the parsed response of each call as JSON.
"""

import json
import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, get_type_hints

folder, url, credential = sys.argv[1:]
sys.path.insert(0, folder)
results: dict[str, Any] = {}


def call(contract: str, operation: str, body: dict[str, Any] | None = None, **parameters: str) -> Any:
    package = import_module(f"{contract}_client")
    client = package.AuthenticatedClient(url, token=credential, raise_on_unexpected_status=True, timeout=60)
    api = import_module(f"{contract}_client.api")
    (name,) = (
        module.name
        for module in walk_packages(api.__path__, f"{contract}_client.api.")
        if module.name.endswith(f".{operation}") and not module.ispkg
    )
    send = import_module(name).sync_detailed
    if body is not None:
        parameters["body"] = get_type_hints(send)["body"].from_dict(body)
    response = send(client=client, **parameters)
    results[operation] = [response.status_code, type(response.parsed).__name__]
    return response.parsed


collection = call("platform", "collections_create", {"name": "kettles"})
lid = "The lid of kettle 7 is made of steel."
text = {"collection_id": collection.id, "title": "Kettle 7", "content": lid}
document = call("platform", "documents_write", text)
call("platform", "documents_status", document_id=document.id)
call("platform", "documents_list", collection_id=collection.id)
call("platform", "retrievals_retrieve", {"query": "kettle"})
documents = [{"document_id": "7", "text": lid}]
call("knowledge", "knowledge_ingest", {"documents": documents}, namespace="kettles")
call("knowledge", "knowledge_query", {"question": "What is the lid made of?"}, namespace="kettles")
call("index", "indexes_create", {"index_name": "kettles", "documents": documents})
call("search", "v1_search", {"q": "lid of kettle 7"}, x_workspace_id=collection.id)
call("rag", "rag_search", {"query_text": "lid of kettle 7"})
call("dify", "dify_retrieve", {"knowledge_id": "kettles", "query": "lid of kettle 7"})
answer = call("rag", "rag_answer", {"query_text": "What is the lid of kettle 7 made of?"})
results["answer"] = answer.answer.text
sys.stdout.write(json.dumps(results))
