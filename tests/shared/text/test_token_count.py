"""The upper bound on tokens, held against the true counts of o200k and cl100k."""

import json
import random
import string
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from local import ROOT
from local.seed_demo import demo_files
from shared.text.token_count import count_tokens, fit_token_budget
from tests.shared.examples import match

HERE = Path(__file__).parent
ENCODINGS = ("o200k", "cl100k")


def _letters(count: int, alphabet: str) -> str:
    draw = random.Random(7)  # noqa: S311  # not a secret
    return "".join(draw.choices(alphabet, k=count))


ODD = {
    "nothing": "", "digits": "1234567890" * 5,
    "dates and amounts": "On 2026-03-18 at 09:00:00Z, 4,300 litres cost 2,006.00 euros (41.25 a litre).",
    "phone numbers": "+353 21 555 0199, +47 73 55 01 00, +49 30 1234 5678",
    "uuid": "00000000-0000-4000-8000-00000000000a 3f9a7c0e-1b2d-4f68-9a7c-0e1b2d4f68aa",
    "base64": "aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0IHRleHQgb2YgYSBmaWxl",
    "random letters": _letters(200, string.ascii_letters),
    "shouting": "THE BATTERY OF THE LOGGER LASTS FIVE YEARS",
    "address": "https://docs.brightwater.example/quality/audits/2026-06?x=1&y=%20#top",
    "python": "def read(path: Path) -> dict[str, int]:\n    return {k: v[0] for k, v in x.items() if v != 1}",
    "json": json.dumps(
        {"query_text": "x", "top_k": 8, "filters": {"lang": None, "date_from": "2026-01-01"}}, indent=2
    ),
    "snake and camel": "getHTTPResponseCode __init__ read_HTTP_header xmlHttpRequest2",
    "emoji": "🧿🫠👩‍👩‍👧‍👦🇮🇪👍🏽❤️🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "norwegian": "Flyttingen til Ålesund skjer på onsdag, og gjærbøtta står på loftet; si ifra.",
    "chinese": "数据记录器的电池在十分钟的采样间隔下可以使用五年。", "rare chinese": "龘靐齉爩鱻麤龗灪吁",
    "korean": "데이터 로거의 배터리는 5년 동안 지속됩니다.",
    "hindi": "डेटा लॉगर की बैटरी पाँच साल तक चलती है।",
    "thai": "แบตเตอรี่ของเครื่องบันทึกข้อมูลใช้งานได้ห้าปี",
    "combining marks": "e\u0301" * 20 + "Z\u0351\u036b\u0343\u036a\u0302A\u034a\u036c\u0351",
    "punctuation": "!@#$%^&*()_+-=[]{}|;':\",./<>?" * 3, "dots": "." * 70,
    "mixed runs": "?!?!?! ~~~ ;;; <<<>>> %%% ^^^ {{{}}} §§§ ‰‰ „“ «» … — –",
    "special tokens": "<|endoftext|><|im_start|>system", "white space": " \t \n\n \t\r\n   \t" * 4,
    "spaces": " " * 100, "wide spaces": "\u00a0" * 20 + "\u3000" * 20 + "\u2003" * 20,
    "indented": "".join(f"{' ' * depth}- item\n" for depth in range(12)),
}  # fmt: skip


def true_counts(texts: Sequence[str]) -> list[dict[str, int]]:
    process = subprocess.run(
        ["node", str(HERE / "count_tokens.mjs")],
        input=json.dumps(texts), capture_output=True, text=True, timeout=120, check=False, cwd=ROOT,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    counts: list[dict[str, int]] = json.loads(process.stdout)
    return counts


def test_no_text_exceeds_its_estimated_tokens_and_few_are_wasted_on_the_demo_documents():
    documents = {file.document.external_id or "": file.document.text for file, _ in demo_files()}
    texts = documents | ODD
    bounds = {name: count_tokens(text) for name, text in texts.items()}
    counts = dict(zip(texts, true_counts([*texts.values()]), strict=True))
    assert {name: bounds[name] for name in texts if bounds[name] < max(counts[name].values())} == {}
    for encoding in ENCODINGS:
        ratio = sum(bounds[name] for name in documents) / sum(counts[name][encoding] for name in documents)
        assert 1 <= ratio < 1.5, "less than a third of the window is wasted"


def test_a_longer_text_never_has_fewer_tokens():
    text = "The logger FL-300 (№ 4821) läuft bei 4,2 °C. 👩‍👩‍👧\n\n| a | b |\n"
    costs = [count_tokens(text[:end]) for end in range(len(text) + 1)]
    assert costs[0] == 0
    assert costs == sorted(costs)


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(0, 300))
def test_matches_are_selected_greedily_within_the_budget_in_order(costs: list[int], budget: int):
    matches = [match(start=number) for number in range(len(costs))]
    price = dict(zip((item.chunk_id for item in matches), costs, strict=True))
    chosen = fit_token_budget(matches, budget, lambda item: price[item.chunk_id])
    left = budget - sum(price[item.chunk_id] for item in chosen)
    assert left >= 0
    assert list(chosen) == [item for item in matches if item in chosen]
    assert all(price[item.chunk_id] > left for item in matches if item not in chosen)
