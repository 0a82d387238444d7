"""BLEU's tokenizer fits the language: sacreBLEU's own, or characters where that is not installed."""

from __future__ import annotations

import sys
from functools import cache
from types import SimpleNamespace

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers import tokenizer_ja_mecab

from t2t_revival.metrics import bleu
from t2t_revival.metrics.bleu import bleu_metric, missing_library, tokenizer_for, tokenizer_name

TEXTS = {
    "zh": ["我们喜欢猫。", "这只狗在睡觉。"],
    "ja": ["私は猫が好きです。", "東京都"],
    "ko": ["나는 고양이를 좋아한다."],
    "th": ["ฉันชอบแมว"],
    "km": ["ខ្ញុំចូលចិត្តឆ្មា"],
    "lo": ["ຂ້ອຍມັກແມວ"],
    "my": ["ကျွန်ုပ်သည်ကြောင်ကိုချစ်သည်"],
    "bo": ["བོད་སྐད"],
}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries are looked for again in a test that changes them."""
    for cached in (tokenizer_name, tokenizer_for):
        monkeypatch.setattr(bleu, cached.__name__, cache(cached.__wrapped__))


@pytest.fixture
def no_mecab(monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.tokenizers import tokenizer_ko_mecab

    for module in (tokenizer_ja_mecab, tokenizer_ko_mecab):
        monkeypatch.setattr(module, "MeCab", None)


@pytest.mark.usefixtures("no_mecab")
@pytest.mark.parametrize(
    ("codes", "name"),
    [
        ("zh zh-CN zh_Hant zho cmn_Hans ZH yue zh_CN.UTF-8", "zh"),
        ("ja jpn_Jpan ko-KR th khm_Khmr lo mya", "char"),
        ("zh-Latn de many", "13a"),
    ],
)
def test_codes(codes: str, name: str) -> None:
    assert {code: bleu.tokenizer_name(code) for code in codes.split()} == dict.fromkeys(codes.split(), name)
    assert bleu.tokenizer_name("") == "13a"


@pytest.mark.usefixtures("no_mecab")
@pytest.mark.parametrize("language", TEXTS)
def test_a_good_translation_has_a_score(language: str) -> None:
    """One wrong character of a text is no BLEU of 0."""
    references = TEXTS[language]
    outputs = [references[0][:-2] + references[0][-1], *references[1:]]
    metric = bleu_metric(language)
    right = BLEU(tokenize="zh" if language == "zh" else "char")
    score = metric.corpus_score(outputs, [references])
    assert score.score == right.corpus_score(outputs, [references]).score > 40
    assert str(metric.get_signature()) == str(right.get_signature())


def test_japanese_is_split_into_words_where_mecab_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = SimpleNamespace(
        dictionary_info=lambda: SimpleNamespace(size=392126, next=None),
        parse=lambda line: " ".join(line[i : i + 2] for i in range(0, len(line), 2)),
        version=lambda: "0.996",
    )
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", SimpleNamespace(Tagger=lambda arguments: tagger))
    monkeypatch.setattr(tokenizer_ja_mecab, "ipadic", SimpleNamespace(MECAB_ARGS=""), raising=False)
    assert bleu_metric("ja").tokenizer_signature == "ja-mecab-0.996-IPA"
    assert bleu.tokenizer_for("ja")("私は猫") == "私は 猫"
    assert missing_library("ja") == ""


@pytest.mark.usefixtures("no_mecab")
def test_a_missing_library_is_named() -> None:
    assert "ja-mecab is not installed: pip install 'sacrebleu[ja]'" in missing_library("ja")
    assert "pip install 'sacrebleu[ko]'" in missing_library("ko")
    assert missing_library("th") == missing_library("zh") == missing_library("") == ""


def test_no_tokenizer_downloads_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.tokenizers.tokenizer_spm", None)  # the one that does
    for language in TEXTS:
        bleu_metric(language)
