"""Answers in scripts that put no spaces between words, and the marks that end sentences in others."""

from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import Verdict
from tests.shared.examples import match
from tests.shared.generation.grounding.checking import checked

CHECKER = Checker([match("本社は東京にあります。社員は毎年25日の休暇を取れます。公司总部位于上海市。")])


OTHER_WORDS = [
    "本社は大阪にあります。", "社員は毎年30日の休暇を取れます。", "公司总部位于北京市。",
    "本社はパリにあります。", "工場は東京にあります。",
]  # fmt: skip


def test_a_source_without_spaces_supports_its_paraphrase_and_no_changed_word():
    paraphrases = ["本社は東京にあります。", "社員は25日の休暇を取れます。", "公司总部位于上海市"]
    supported = [
        text for text in paraphrases + OTHER_WORDS if CHECKER.check(text).verdict is Verdict.SUPPORTED
    ]
    assert supported == paraphrases


def test_marks_of_other_scripts_end_a_sentence():
    for text in ["केतली बंद है। पानी गर्म है।", "الماء ساخن؟ نعم الماء ساخن", "پانی گرم ہے۔ چائے تیار ہے۔"]:
        assert len(checked(CHECKER, text)) == 2, text
