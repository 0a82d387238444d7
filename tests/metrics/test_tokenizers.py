"""BLEU's tokenizer fits the language: sacreBLEU's own, or characters where that is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers import tokenizer_ja_mecab

from t2t_revival.metrics import bleu
from t2t_revival.metrics.bleu import bleu_metric, missing_libraries, name_of_code, tokenizer_for

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
def forget() -> Iterator[None]:
    """Libraries are looked for again, before and after a test that changes them."""
    bleu.usable.cache_clear()
    bleu._tokenizer.cache_clear()
    yield
    bleu.usable.cache_clear()
    bleu._tokenizer.cache_clear()


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
        ("zh-Latn", "13a"),
        ("de many", ""),
    ],
)
def test_codes(codes: str, name: str) -> None:
    assert {code: name_of_code(code) for code in codes.split()} == dict.fromkeys(codes.split(), name)
    assert name_of_code("") == ""


@pytest.mark.usefixtures("no_mecab")
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("known", [True, False])
def test_a_good_translation_has_a_score(language: str, known: bool) -> None:
    """One wrong character of a text is no BLEU of 0, whether the language is given or not."""
    references = TEXTS[language]
    outputs = [references[0][:-2] + references[0][-1], *references[1:]]
    metric = bleu_metric(language if known else "", references)
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
    for language in ("ja", ""):
        assert bleu_metric(language, TEXTS["ja"]).tokenizer_signature == "ja-mecab-0.996-IPA"
        assert tokenizer_for(language, TEXTS["ja"])("私は猫") == "私は 猫"
        assert missing_libraries(language, TEXTS["ja"]) == ""


@pytest.mark.usefixtures("no_mecab")
def test_a_missing_library_is_named() -> None:
    assert "ja-mecab is not installed: pip install 'sacrebleu[ja]'" in missing_libraries("ja", [])
    assert "pip install 'sacrebleu[ko]'" in missing_libraries("", TEXTS["ko"])
    assert missing_libraries("th", []) == missing_libraries("zh", []) == ""


def test_text_of_several_languages_has_the_tokenizers_of_all() -> None:
    references = [*TEXTS["zh"], "The cat sleeps, again.", "A dog!"]
    metric = bleu_metric("many", references)
    assert metric.tokenizer_signature == "13a+zh"
    tokens = [" ".join("我们喜欢猫。"), " ".join("这只狗在睡觉。"), "The cat sleeps , again .", "A dog !"]
    assert [*map(metric.tokenizer, references)] == tokens
    found = metric.corpus_score(["我们喜欢狗。", *references[1:]], [references])
    by_hand = BLEU(tokenize="none", force=True).corpus_score(
        [tokens[0].replace("猫", "狗"), *tokens[1:]], [tokens]
    )
    assert found.score == by_hand.score
    assert "tok:13a+zh" in str(metric.get_signature())


def test_foreign_names_do_not_make_a_second_language() -> None:
    assert bleu_metric("", [*["Ein Hund schläft."] * 20, "北京"]).tokenizer_signature == "13a"
    assert bleu_metric("", [*TEXTS["zh"] * 10, "OpenAI", "123"]).tokenizer_signature == "zh"
    assert bleu_metric("", ["", "12"]).tokenizer_signature == "13a"


def test_no_tokenizer_downloads_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.tokenizers.tokenizer_spm", None)  # the one that does
    for language, text in TEXTS.items():
        bleu_metric(language, text)
