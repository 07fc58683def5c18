"""Answers in scripts that put no spaces between words, and the marks that end sentences in others."""

import pytest

from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import Verdict
from tests.shared.examples import match
from tests.shared.generation.grounding.checking import checked

CHECKER = Checker([match("本社は東京にあります。社員は毎年25日の休暇を取れます。公司总部位于上海市。")])


def test_a_source_without_spaces_supports_its_paraphrase(subtests: pytest.Subtests):
    for text in ["本社は東京にあります。", "社員は25日の休暇を取れます。", "公司总部位于上海市"]:
        with subtests.test(sentence=text):
            assert CHECKER.check(text).verdict is Verdict.SUPPORTED


OTHER_WORDS = [
    "本社は大阪にあります。",
    "社員は毎年30日の休暇を取れます。",
    "公司总部位于北京市。",
    "本社はパリにあります。",
    "工場は東京にあります。",
]


def test_a_changed_word_in_text_without_spaces_is_detected(subtests: pytest.Subtests):
    for text in OTHER_WORDS:
        with subtests.test(sentence=text):
            assert CHECKER.check(text).verdict is Verdict.UNSUPPORTED


def test_marks_of_other_scripts_end_a_sentence(subtests: pytest.Subtests):
    for text in ["केतली बंद है। पानी गर्म है।", "الماء ساخن؟ نعم الماء ساخن", "پانی گرم ہے۔ چائے تیار ہے۔"]:
        with subtests.test(text=text):
            assert len(checked(CHECKER, text)) == 2
