"""Names in scripts without case: katakana, and Han and Hangul words with typical suffixes.

Without case the form of other words does not identify names. They are names where they are quoted or in a
title, as are words in Arabic, Hebrew and Thai.
"""

import re
from collections.abc import Iterator

from shared.graph.mentions import Mention, mention_of
from shared.text.word_lists import word_sets

_CJK = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_LOANWORDS = word_sets(__file__)["loanwords"]
# Characters that precede names in Chinese sentences, and that few names contain.
_FUNCTION_CHARACTERS = (
    "的在是了和与與及或于於由对對为為被从從向到我们們他她它也都把将將有这這那个個等并並但而以之其就不说說"
)
_HAN = rf"(?:(?![{_FUNCTION_CHARACTERS}])[\u4e00-\u9fff\u3005])"
_SUFFIXES = (
    ("organization", "株式会社|有限公司|有限会社|公司|集团|集團|大学|大學|银行|銀行|研究所|研究院"
     "|学院|學院|委员会|委員会|協会|协会|財団|基金会|博物馆|博物館|出版社|新聞社|省庁|医院|病院|工業|商事|電機"),
    ("place", "都|道|府|県|市|区|町|村|省|州|县|縣|區|島|岛|山脉|空港|机场|機場|駅|车站|寺|城"),
    ("team", "团队|團隊|チーム|部門|部门|事業部"),
    ("service", "服务|服務|平台|システム|サービス"),
)  # fmt: skip
_HANGUL = "[가-힣A-Za-z0-9]"
# Particles behind a Korean noun.
_PARTICLES = "(?:은|는|이|가|을|를|의|에|에서|에게|와|과|도|로|으로|만|까지|부터|이다|입니다|이며|께서)"
_KOREAN = (
    ("organization", "주식회사|대학교|대학|은행|그룹|연구소|연구원|병원|공사|협회|재단|전자|회사|위원회"),
    ("place", "특별시|광역시|공항"),
    ("team", "팀|부서"),
    ("service", "서비스|시스템|플랫폼"),
)
_PATTERN = re.compile(
    "|".join(
        [
            rf"(?P<company>株式会社(?:{_HAN}|[\u30a0-\u30ffA-Za-z]){{1,15}})",
            *(rf"(?P<h_{kind}>(?:{_HAN}|[\u30a1-\u30fa\u30fc]){{2,8}}?(?:{suffixes}))(?![\u4e00-\u9fff]{{0,1}}(?:{suffixes}))"
              for kind, suffixes in _SUFFIXES),
            rf"(?P<person>(?:{_HAN}{{2,4}}|[\u30a1-\u30fa\u30fc・]{{2,20}}))(?:さん|様|氏|先生|女士|博士|教授)",
            r"(?P<katakana>[\u30a1-\u30fa\u30fc]{2,20}(?:[・=＝][\u30a1-\u30fa\u30fc]{1,20}){0,4})",
            *(rf"(?P<k_{kind}>{_HANGUL}{{1,12}}(?:\ (?=팀|서비스|시스템|그룹))?(?:{suffixes}))"
              rf"(?={_PARTICLES}?(?![가-힣]))"
              for kind, suffixes in _KOREAN),
            r"(?P<korean>[가-힣]{2,4})"
            rf"(?=\ ?(?:씨|님|대표|사장|교수|박사|부장|과장|팀장)(?:{_PARTICLES})?(?![가-힣]))",
        ]
    )
)  # fmt: skip


def cjk_names_in(text: str) -> Iterator[Mention]:
    if not _CJK.search(text):
        return
    for match in _PATTERN.finditer(text):
        group = str(match.lastgroup)
        name = match[group]
        match group:
            case "katakana":
                if "・" in name or (len(name.strip("ー")) >= 3 and name not in _LOANWORDS):
                    yield mention_of(match, "person" if "・" in name else "name", group)
            case "person" | "korean":
                yield mention_of(match, "person", group)
            case "company":
                yield mention_of(match, "organization", group)
            case _:
                if name not in _LOANWORDS:
                    yield mention_of(match, group[2:], group)
