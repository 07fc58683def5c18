"""Names in scripts without case: katakana, and Han and Hangul words with typical suffixes.

Without case the form of other words does not identify names. They are names where they are quoted or in a
title, as are words in Arabic, Hebrew and Thai.
"""

import re
from collections.abc import Iterator

from shared.graph.mentions import Mention, mention_of
from shared.text.word_lists import word_sets

# A text without one of these has no such name. This test takes a hundredth of the time of the search.
_CJK = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_LOANWORDS = word_sets(__file__)["loanwords"]
_KATAKANA = r"\u30a1-\u30fa\u30fc"
# Characters that precede names in Chinese sentences, and that few names contain.
_FUNCTION_CHARACTERS = (
    "的在是了和与與及或于於由對对為为被从從向到我们們他她它也都把将將有這这那個个等並并但而以之其就不说說"
)
_HAN = rf"(?![{_FUNCTION_CHARACTERS}])[\u4e00-\u9fff\u3005]"
_SUFFIXES = {
    "organization": "株式会社|公司|集团|集團|大学|大學|银行|銀行|研究所|研究院|学院|學院"
    "|委员会|委員会|協会|协会|財団|基金会|博物馆|博物館|出版社|新聞社|医院|病院|工業|商事|電機",
    "place": "都|道|府|県|市|区|町|村|省|州|县|縣|區|島|岛|山脉|空港|机场|機場|駅|车站|寺|城",
}
_KOREAN = {
    "organization": "주식회사|대학교|대학|은행|그룹|연구소|병원|공사|협회|재단|전자|회사|위원회",
    "place": "특별시|광역시|공항",
    "team": "팀|부서",
}
# Particles behind a Korean noun.
_PARTICLES = "(?:은|는|이|가|을|를|의|에|에서|에게|와|과|도|로|으로|만|까지|부터|이다|입니다|이며|께서)"
_NAMES = re.compile(
    "|".join(
        [
            rf"(?P<organization>株式会社(?:{_HAN}|[{_KATAKANA}A-Za-z]){{1,15}})",
            *(
                rf"(?P<han_{kind}>(?:{_HAN}|[{_KATAKANA}]){{2,8}}?(?:{suffixes}))(?![\u4e00-\u9fff]?(?:{suffixes}))"
                for kind, suffixes in _SUFFIXES.items()
            ),
            rf"(?P<katakana>[{_KATAKANA}]{{2,20}}(?:[・=＝][{_KATAKANA}]{{1,20}}){{0,4}})",
            *(
                rf"(?P<hangul_{kind}>[가-힣A-Za-z0-9]{{1,12}}\ ?(?:{suffixes}))(?={_PARTICLES}?(?![가-힣]))"
                for kind, suffixes in _KOREAN.items()
            ),
        ]
    )
)


def cjk_names_in(text: str) -> Iterator[Mention]:
    if not _CJK.search(text):
        return
    for match in _NAMES.finditer(text):
        name, kind = match[0], str(match.lastgroup).rpartition("_")[2]
        if name in _LOANWORDS or (kind == "katakana" and len(name.strip("ー")) < 3):
            continue
        yield mention_of(match, kind if kind != "katakana" else "person" if "・" in name else "name")
