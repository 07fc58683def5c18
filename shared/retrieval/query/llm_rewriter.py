"""Query rewriting by a model, with the rules of expansion.py as fallback.

The prompt fences the question as data. Only the caller's own search uses the reply.
"""

import logging
import re

from shared.config import Settings
from shared.errors import GenerationBusy, GenerationFailed
from shared.models.openai_model import ChatModel
from shared.retrieval.query.expansion import Expansion, expand
from shared.text.identifiers import JOINED_WORD
from shared.text.normalize import is_one_line
from shared.text.prompt_fence import Fence

log = logging.getLogger("rag")
# A model would shorten a longer question, and lose parts of it.
MAX_QUESTION = 2_000
MAX_LINE = 500
SYSTEM = (
    "You rewrite a question as a query for a search engine over an organization's documents: one line, "
    "in the question's language, with its names, numbers and identifiers exactly as they are, without "
    "politeness, with the one or two synonyms that its documents are most likely to use. Do not answer the "
    "question. Reply with the query alone."
)


class Rewriter(ChatModel):
    """Model that rewrites a question as one line."""

    def expand(self, question: str) -> Expansion:
        """The expansion by the model; by the rules if it fails, or the question is empty or too long."""
        by_rules = expand(question)
        if not by_rules.text or len(question) > MAX_QUESTION:
            return by_rules
        line = self._line(by_rules.text)
        if line is None:
            return by_rules
        # Words that the model leaves out remain keywords.
        existing = set(_words(by_rules.words))
        added = tuple(dict.fromkeys(word for word in _words(line) if word not in existing))
        return Expansion(line, " ".join((by_rules.words, *added)), (*by_rules.additions, *added), self.model)

    def _line(self, question: str) -> str | None:
        fence = Fence()
        system, user = fence.system_prompt(SYSTEM, "question"), fence.wrap("question", question)
        try:
            line = self.complete(system, user, temperature=0).text.strip()
        except (GenerationBusy, GenerationFailed) as failed:
            # The search proceeds with the rules.
            log.warning("RAG_QUERY_REWRITE_MODEL failed (%s): rules rewrite the question", failed.log_reason)
            return None
        if is_one_line(line, MAX_LINE) and fence.nonce not in line:
            return line
        log.warning("RAG_QUERY_REWRITE_MODEL returned no query: rules rewrite the question")
        return None


def _words(text: str) -> list[str]:
    """In lower case; identifiers stay whole."""
    return re.findall(rf"{JOINED_WORD}|\w", text.lower())


def rewriter_for(settings: Settings) -> Rewriter | None:
    """None if the settings name no model. Raises ConfigurationError for a model without a key."""
    seconds = settings.rag_query_rewrite_timeout_seconds
    model = settings.rag_query_rewrite_model
    return Rewriter.of_gateway(settings, "RAG_QUERY_REWRITE_MODEL", model, seconds)
