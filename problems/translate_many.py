"""Translation between many languages, by tags before the sources (Johnson et al., 2017)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2t_revival import registration
from t2t_revival.data.mixture import REVERSE, Corpus, Mixture
from t2t_revival.data.sources import Source, source
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import Problem

LIST = '--data_source="en-de=FOLDER,en-fr=FOLDER"'


@registration.register_problem
class TranslateMany(Problem):
    """Many languages to many: corpora of several pairs, each source after the tag of its target, as <2de>.

    A corpus is named after its languages, as en-de, or lists them in the YAML file.
    """

    source_lang = target_lang = "many"
    default_source = ""
    lines_have_tags = True

    def mixture(self, data_source: str) -> Mixture:
        mixture = super().mixture(data_source)
        if mixture.is_single:
            self.make_source(data_source, None)
        targets = (_languages(corpus)[0 if corpus.swapped else 1] for corpus in mixture.corpora)
        corpora = (
            dataclasses.replace(corpus, tag=corpus.tag or f"<2{target}>")
            for corpus, target in zip(mixture.corpora, targets, strict=True)
        )
        return dataclasses.replace(mixture, corpora=tuple(corpora))

    def make_source(self, data_source: str, tmp_dir: Path | None) -> Source:
        raise T2TError(f"problem {self.name} needs corpora of several languages: give {LIST}, or a YAML file")

    def corpus_source(self, corpus: Corpus, tmp_dir: Path | None) -> Source:
        return source(corpus.source, *_languages(corpus), tmp_dir=tmp_dir)


def _languages(corpus: Corpus) -> tuple[str, str]:
    """Returns the languages of the corpus's own source, as listed or by its name."""
    if corpus.languages:
        return corpus.languages
    source_lang, _, target_lang = corpus.name.removesuffix(REVERSE).partition("-")
    if not (source_lang and target_lang):
        raise T2TError(
            f"corpus {corpus.name!r}: its languages are not known: name it after them, as in {LIST}, or give "
            "`languages: en-de` in a YAML file"
        )
    return source_lang, target_lang
