"""Random drawing of sentence meanings."""

from __future__ import annotations

from dataclasses import replace

from tools.sample_corpus.clauses import DESCRIBED, DIRECT, PASSING, PERSON, SAYING, ClauseDrawer
from tools.sample_corpus.function_words import FREQUENCIES, LINKS, NAMES, POSSESSIVES, PRONOUNS
from tools.sample_corpus.lexicon import BE, VERBS
from tools.sample_corpus.meaning import Clause, Gap, Name, NounPhrase, Pronoun, Sentence


class Composer(ClauseDrawer):
    """Draws sentences, deterministically for a given state of the random generator."""

    def sentence(self) -> Sentence:
        """Draws a meaning."""
        draw = self._random()
        if draw < 0.46:
            return Sentence(self._with_time(self._clause(self._tense())))
        if draw < 0.55:
            return Sentence(self._description())
        if draw < 0.63:
            return Sentence(self._report())
        if draw < 0.73:
            return self._question()
        return self._linked()

    def _description(self) -> Clause:
        """Draws a clause such as "The dog is old" or "The dog is older than the cat"."""
        noun = self._pick(DESCRIBED)
        quality = self._quality(noun)
        subject: NounPhrase = replace(self._phrase(noun, ("the", "the", "this", *POSSESSIVES)), adjectives=())
        if noun.person and self._chance(0.3):
            subject = Name(*self._pick(NAMES)) if self._chance(0.4) else Pronoun(self._pick(PRONOUNS))
        tense = self._pick(("present", "present", "past"))
        clause = Clause(subject, BE, tense, quality=quality, negated=self._chance(0.15))
        if quality.comparative and not clause.negated and self._chance(0.4):
            shared = quality.classes & noun.classes
            others = [other for other in DESCRIBED if other is not noun and other.classes & shared]
            if not others:
                return clause
            return replace(clause, than=self._phrase(self._pick(others), ("the", *POSSESSIVES), light=True))
        if not clause.negated and self._chance(0.4) and quality.name in PASSING:
            return replace(clause, frequency=self._pick(FREQUENCIES))
        return clause

    def _part(self, tense: str) -> Clause:
        """Draws a clause for a sentence of two clauses."""
        if tense != "future" and self._chance(0.2):
            return replace(self._description(), tense=tense)
        return self._clause(tense, light=self._chance(0.6))

    def _report(self) -> Clause:
        """Draws a clause such as "The man says that ..."."""
        verb = self._pick(SAYING)
        content = self._part(self._tense())
        if content.verb is not BE:
            content = self._with_time(content, first=0.0)
        return Clause(self._subject(PERSON, light=True), verb, content=content)

    def _linked(self) -> Sentence:
        link = self._pick(LINKS)
        main_tense, linked_tense = self._pick(link.tenses)
        main, linked = self._part(main_tense), self._part(linked_tense)
        if (
            link.mood == "subjunctive"
            and linked_tense == "past"
            and (linked.modal or "state" in linked.verb.notes)
        ):
            return self._linked()
        first = link.before and self._chance(0.5)
        return Sentence(main, link=link, linked=linked, link_first=first)

    def _question(self) -> Sentence:
        kind = self._pick(("whether", "whether", "who", "what", "where", "why", "when"))
        tense = self._tense()
        if kind == "who":
            return Sentence(self._plain(self._clause(tense, Gap(), light=True)), kind)
        if kind == "what":
            verb = self._verb(DIRECT, tense, None)
            while verb.objects & {"person", "sight"}:
                verb = self._verb(DIRECT, tense, None)
            subject = self._subject(verb.subjects, light=True)
            return Sentence(Clause(subject, verb, tense, self._modal(verb, tense), object=Gap()), kind)
        clause = self._plain(self._clause(tense, light=True))
        if kind == "whether":
            return Sentence(self._with_time(clause, first=0.0), kind)
        if kind == "where" and (clause.modifier or "place" not in clause.verb.notes):
            clause = replace(
                clause, verb=VERBS[0], object=None, modifier=None, manner=None, recipient=None, modal=""
            )
        return Sentence(clause, kind)

    @staticmethod
    def _plain(clause: Clause) -> Clause:
        """Removes negation and frequency, which the questions here do not have."""
        return replace(clause, negated=False, frequency=None)
