"""A gateway that a model of names stands behind: what it replies, and a model that asks it."""

import json
from typing import Any

from shared.graph.llm_extractor import GraphModel, graph_model_for
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, StandIn

SECRET = "sk-secret-7f3x"
TOKENS = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}


def says(text: Any, usage: Any = TOKENS) -> Reply:
    """A completion of that text."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(json={**body, "usage": usage} if usage else body)


def lists(*names: Any, relations: Any = ()) -> Reply:
    """A completion of names, each a text or (name, kind, *spellings), and relations."""
    entries = [name if isinstance(name, tuple) else (name, "name") for name in names]
    reply = {
        "names": [{"name": name, "kind": kind, "spellings": spellings} for name, kind, *spellings in entries],
        "relations": [
            {"subject": subject, "type": type_, "object": other} for subject, type_, other in relations
        ],
    }
    return says(json.dumps(reply))


def model(api: StandIn, **fields: Any) -> GraphModel:
    made = graph_model_for(
        settings(rag_llm_api_key=SECRET, rag_llm_url=f"{api.url}/v1", rag_graph_model="small/model", **fields)
    )
    assert made
    return closed_after_test(made)
