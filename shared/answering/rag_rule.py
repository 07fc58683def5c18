"""Confidence of the rag contract: its rule is a ceiling of confidence, or decides alone."""

from dataclasses import replace

from shared.config import Settings
from shared.generation.confidence import CONTRACT_THRESHOLDS, judge_by_contract, limit_to_ceiling
from shared.types import JudgedSearch, Thresholds


def judge(searched: JudgedSearch, settings: Settings) -> JudgedSearch:
    """The search with a level by the rag contract's rule if the settings name its thresholds, else no higher
    than the rule permits."""
    high, medium = settings.rag_confidence_high_threshold, settings.rag_confidence_medium_threshold
    if high is None and medium is None:
        return replace(searched, judgement=limit_to_ceiling(searched.judgement, searched.matches))
    if high is None:
        high = max(CONTRACT_THRESHOLDS.high, medium or 0.0)
    if medium is None:
        medium = min(CONTRACT_THRESHOLDS.medium, high)
    thresholds = Thresholds(high, medium)
    return replace(searched, judgement=judge_by_contract(searched.judgement, searched.matches, thresholds))
