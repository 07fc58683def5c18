"""A question made fit for searching by a model, where one is configured; by the rules where it fails.

The question is data, inside a fence (prompt_fence.py). The model's reply goes only to the caller's own
search, under the caller's own rights.
"""

import logging
import re

from shared.config import Settings
from shared.errors import GenerationBusy, GenerationFailed
from shared.models.openai_model import ChatModel
from shared.retrieval.query.expansion import Expanded, expand
from shared.text.identifiers import JOINED_WORD
from shared.text.normalize import has_invisible
from shared.text.prompt_fence import Fence

log = logging.getLogger("rag")
# A longer question is a text, which a model would make shorter and thereby worse.
MAX_QUESTION = 2_000
MAX_LINE = 500
SYSTEM = (
    "You rewrite a question as a query for a search engine over an organization's documents: one line, "
    "in the question's language, with its names, numbers and identifiers exactly as they are, without "
    "politeness, with the one or two synonyms that its documents are most likely to use. Do not answer the "
    "question. Reply with the query alone."
)


class Rewriter(ChatModel):
    """The model that writes one line for a question."""

    def expand(self, question: str, lang: str | None = None) -> Expanded:
        """As expand.expand, `by` the model; by the rules when it fails, and where there is nothing to ask."""
        ruled = expand(question, lang)
        if not ruled.meaning or len(question) > MAX_QUESTION:
            return ruled
        line = self._line(ruled.meaning)
        if line is None:
            return ruled
        # The question's own words stay: what the model leaves out is still looked for.
        known = set(_words(ruled.words))
        added = tuple(dict.fromkeys(word for word in _words(line) if word not in known))
        return Expanded(line, " ".join((ruled.words, *added)), (*ruled.added, *added), self.model)

    def _line(self, question: str) -> str | None:
        fence = Fence()
        system, user = fence.system_prompt(SYSTEM, "question"), fence.wrap("question", question)
        try:
            line = self.complete(system, user, temperature=0).text.strip()
        except (GenerationBusy, GenerationFailed) as failed:
            # A search does not fail for want of better words.
            log.warning("the model that rewrites questions failed: %s", failed.because)
            return None
        if is_query(line) and fence.nonce not in line:
            return line
        log.warning("the model that rewrites questions wrote no query")
        return None


def is_query(line: str) -> bool:
    """Whether it is one line that may be searched for: not empty, not long, of words."""
    return (
        0 < len(line) <= MAX_LINE
        and len(line.splitlines()) == 1
        and re.search(r"[^\W_]", line) is not None
        and not re.search(r"<<|>>|```", line)
        and not has_invisible(line)
    )


def _words(text: str) -> list[str]:
    """In lower case; names keep what joins their parts."""
    return re.findall(rf"{JOINED_WORD}|\w", text.lower())


def rewriter_for(settings: Settings) -> Rewriter | None:
    """None where the settings name no model. Raises ConfigurationError for a model without a key."""
    seconds = settings.rag_query_rewrite_timeout_seconds
    model = settings.rag_query_rewrite_model
    return Rewriter.of_gateway(settings, "RAG_QUERY_REWRITE_MODEL", model, seconds)
