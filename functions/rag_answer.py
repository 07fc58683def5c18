"""rag-answer: an answer with citations; the citations alone if confidence is low."""

from shared import pipeline
from shared.answering import rag_rule, request_recording
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import Caller
from shared.api.contracts import rag
from shared.api.dependencies import Container

app = create_app(rag, "rag-answer", errors=(400, 401, 403, 413, 429, 500, 503))


@app.post("/api/rag/answer")
@app.post("/functions/v1/rag-answer")
async def answer(caller: Caller, services: Container, body: rag.Request) -> rag.AnswerResponse:
    query = body.to_query()
    result = await pipeline.answer(services, caller, query, rule=rag_rule.judge)
    await request_recording.record_answer(services, caller, query, result)
    return rag.AnswerResponse.of(body, result)


handler = lambda_handler(app)
