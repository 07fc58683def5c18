"""Forms in which embedding models receive a question and a document.

Many models are trained with a prefix or a request parameter for each of the two, and find less without it.
The table below knows them by the model's name; RAG_EMBEDDING_ROLES overrides it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from urllib.parse import urlsplit

from shared.config import EmbeddingForm, EmbeddingForms

NO_FORMS = EmbeddingForms()


class Role(StrEnum):
    """What an embedded text is: `question` is compared with documents, `document` is stored."""

    QUESTION = "question"
    DOCUMENT = "document"

    def form(self, forms: EmbeddingForms) -> EmbeddingForm:
        return forms.question if self is Role.QUESTION else forms.document


# The role of all texts, or of each.
Roles = Role | Sequence[Role]


def each_role(role: Roles, texts: Sequence[str]) -> Sequence[Role]:
    return [role] * len(texts) if isinstance(role, Role) else role


_WEB = "Given a web search query, retrieve relevant passages that answer the query"
_INSTRUCT = f"Instruct: {_WEB}\nQuery: "
_REPRESENT = "Represent this sentence for searching relevant passages: "
_QUESTION = "Instruct: Given a question, retrieve passages that answer the question\nQuery: "
# The name without owner, tag and quantisation, and the prefixes of a question and of a document. Sources:
# github.com/embeddings-benchmark/mteb, mteb/models/model_implementations/, or the model's card.
_PREFIXES: tuple[tuple[str, str, str], ...] = (
    (r"(multilingual-)?e5-(small|base|large)(-v2)?", "query: ", "passage: "),  # e5_models.py
    (r"multilingual-e5-large-instruct|e5-mistral-7b-instruct|zeta-alpha-e5-mistral", _INSTRUCT, ""),
    (r"bge-(small|base|large)(-en)?(-v1\.5)?", _REPRESENT, ""),  # bge_models.py; bge-m3 has none
    (r"bge-(small|base|large)-zh(-v1\.5)?", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"bge-multilingual-gemma2", f"<instruct>{_WEB}.\n<query>", ""),  # card
    (r"nomic-embed-text(-v\S+)?|modernbert-embed-base", "search_query: ", "search_document: "),
    (r"nomic-embed-code", "Represent this query for searching relevant code: ", ""),  # card
    (r"(snowflake-)?arctic-embed(-(xs|s|m|m-long|l))?(-v1\.5)?", _REPRESENT, ""),  # arctic_models.py
    (r"snowflake-arctic-embed(2|-[ml]-v2\.0)", "query: ", ""),  # card
    (r"mxbai-embed-(2d-)?(large|xsmall)(-v1)?|uae-large-v1", _REPRESENT, ""),  # mixedbread_ai, uae_models.py
    (r"deepset-mxbai-embed-de-large-v1", "query: ", "passage: "),  # card
    (r"embeddinggemma(-2|-300m)?|gemini-embedding-2(-preview)?",
        "task: search result | query: ", "title: none | text: "),  # google_gemini.py
    (r"(qwen3-embedding|harrier-oss-v1)(-[\d.]+[mb])?", _INSTRUCT.rstrip(" "), ""),  # qwen3_models.py
    (r"gte-qwen[\d.]+-[\d.]+b-instruct(-embed)?", _INSTRUCT, ""),  # gte_models.py
    (r"jina-embeddings-v3", "Represent the query for retrieving evidence documents: ",
        "Represent the document for retrieval: "),  # jina_models.py
    (r"jina-embeddings-v4(-text-retrieval|-vllm-retrieval)?", "Query: ", "Passage: "),  # card of the GGUF
    (r"jina-embeddings-v5-(text|omni)-(small|nano)(-retrieval)?", "Query: ", "Document: "),
    (r"stella_en_[\d.]+[mb]_v5", f"Instruct: {_WEB}.\nQuery: ", ""),  # config_sentence_transformers.json
    (r"linq-embed-mistral",
        "Instruct: Given a question, retrieve Wikipedia passages that answer the question\nQuery: ", ""),
    (r"nv-embed-v[12]|llama-embed-nemotron-8b", _QUESTION, ""),  # nvidia_models.py
    (r"nemotron-3(\.5)?-embed-[18]b", "query: ", "passage: "),  # card
    (r"llama-nemotron-embed-(vl-)?1b-v2|llama-3\.2-(nv-embedqa|nemoretriever)-\w+(-vlm)?(-embed)?-v[12]"
        r"|nv-embedqa-\S+|embed-qa-4|nv-embed-qa", "query:", "passage:"),  # card
    (r"kalm-embedding-(multilingual-mini-instruct-v[\d.]+|gemma3-12b-2511)",
        "Instruct: Given a query, retrieve documents that answer the query \n Query: ", ""),  # kalm_models.py
    (r"ruri-(small|base|large)(-v2)?", "クエリ: ", "文章: "),  # ruri_models.py
    (r"ruri-v3(-\d+m)?", "検索クエリ: ", "検索文書: "),
    (r"plamo-embedding-1b(-coreml)?", "次の文章に対して、関連する文章を検索してください: ", ""),  # card
    (r"sarashina-embedding-v2-1b",
        "task: 質問を与えるので、その質問に答えるのに役立つ関連文書を検索してください。\nquery: ", "text: "),
    (r"zembed-1(-embedding)?", "<|im_start|>system\nquery<|im_end|>\n<|im_start|>user\n",
        "<|im_start|>system\ndocument<|im_end|>\n<|im_start|>user\n"),  # discussion 1 of its repository
)  # fmt: skip
# Request parameters: the name, the end of the endpoint's host ("" for any), the parameter and its values.
# Sources: the providers' API references.
_PARAMETERS: tuple[tuple[str, str, str, str, str], ...] = (
    (r"(cohere\.)?embed-((english|multilingual)(-light)?-v3(\.0)?|v4(\.0)?)", "", "input_type",
        "search_query", "search_document"),
    (r"cohere-embed-(english|multilingual)-v3\.0", "", "input_type", "search_query", "search_document"),
    (r"cohere-embed-v\d-(english|multilingual)", "", "input_type", "query", "document"),  # Azure's names
    (r"voyage-\S+", "", "input_type", "query", "document"),
    (r"jina-embeddings-v[345]\S*", "jina.ai", "task", "retrieval.query", "retrieval.passage"),
    (r"gemini-embedding-(001|exp-03-07)|text-embedding-00[45]|text-multilingual-embedding-002", "",
        "task_type", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
    (r"\S*(nemotron|nv-embed|nemoretriever|embed-qa|arctic-embed)\S*", "nvidia.com", "input_type",
        "query", "passage"),
)  # fmt: skip
_QUANTISATION = re.compile(
    r"[-_.](gguf|mlx|onnx|qat|unquantized|dwq|awq|gptq|i?q\d\w*|b?f(p)?(16|32)|int[48]|nvfp4|fp8|[48]-?bit)$"
)


def known_forms(model: str, url: str = "") -> EmbeddingForms:
    """The forms of the model with this name at this endpoint; empty ones for other names."""
    name, host = _plain_name(model), urlsplit(url).hostname or ""
    for pattern, end, parameter, question, document in _PARAMETERS:
        if host.endswith(end) and re.fullmatch(pattern, name):
            return EmbeddingForms(question={parameter: question}, document={parameter: document})
    for pattern, question, document in _PREFIXES:
        if re.fullmatch(pattern, name):
            return EmbeddingForms(question=question, document=document)
    return NO_FORMS


def without_parameters(model: str, forms: EmbeddingForms) -> EmbeddingForms:
    """The forms for an endpoint that refuses the parameters: the model's known prefixes, or none."""
    for candidate in (forms, known_forms(model)):
        if isinstance(candidate.question, str) and isinstance(candidate.document, str):
            return candidate
    return NO_FORMS


def required_parameters(words: str) -> EmbeddingForms:
    """The parameters for an endpoint that says it needs an `input_type`: NVIDIA's words, or Cohere's."""
    is_cohere = "asymmetric" not in words
    question, document = ("search_query", "search_document") if is_cohere else ("query", "passage")
    return EmbeddingForms(question={"input_type": question}, document={"input_type": document})


def stored_name(model: str, default: EmbeddingForms, forms: EmbeddingForms) -> str:
    """The name under which the database stores the model's embeddings. With another form of documents than
    the known one it is another model there: vectors of different forms cannot be compared."""
    if forms.document == default.document:
        return model
    return f"{model} [{sha256(json.dumps(forms.document, sort_keys=True).encode()).hexdigest()[:4]}]"


def forms_of(model: str, url: str, overrides: Mapping[str, EmbeddingForms]) -> tuple[EmbeddingForms, str]:
    """The forms that apply to the model, and the name of its embeddings in the database."""
    default = known_forms(model, url)
    forms = overrides.get(model, default)
    return forms, stored_name(model, default, forms)


def _plain_name(model: str) -> str:
    """The name in lower case, without owner, tag, quantisation and the prefix of LM Studio."""
    name = re.split(r"[:@]", model.lower().removeprefix("@").rsplit("/", 1)[-1])[0]
    name = re.sub(r"^text-embedding-(?!\d|v\d|ada)|^(intfloat|cl-nagoya)[-_]", "", name)
    while (shorter := _QUANTISATION.sub("", name)) != name:
        name = shorter
    return name
