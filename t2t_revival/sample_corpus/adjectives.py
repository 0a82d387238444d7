"""Table of adjectives, read by `words.read_adjective`; `<` marks those before their noun in French."""
# ruff: noqa: E501

from __future__ import annotations

from t2t_revival.sample_corpus.words import read_adjective, read_rows

_ADJECTIVES = """
old older | alt älter | <vieux vieille vieux vieil | person animal thing wear inside spot built | outer
new | neu | <nouveau nouvelle nouveaux nouvel | work thing wear inside built film song | outer
big bigger | groß größer | <grand grande | animal thing wear inside spot built | outer
small smaller | klein kleiner | <petit petite | animal thing wear inside spot built food | outer
young younger | jung jünger | <jeune jeune | person animal | outer
beautiful more beautiful | schön schöner | <beau belle beaux bel | looks animal thing wear sight song film tale | outer
pretty prettier | hübsch hübscher | <joli jolie | wear picture sight animal | outer
good | gut | <bon bonne | work food drink good | alone
bad | schlecht | <mauvais mauvaise | work food drink good | alone
long longer | lang länger | <long longue | long | outer
red | rot | rouge rouge | thing wear built | inner
blue | blau | bleu bleue | thing wear built | inner
green | grün | vert verte | thing wear built | inner
black | schwarz | noir noire | pet wear machine device | inner
white | weiß | blanc blanche | pet wear thing built | inner
yellow | gelb | jaune jaune | wear thing built | inner
grey | grau | gris grise | pet wear built | inner
French | französisch | français française | work text song film | inner
German | deutsch | allemand allemande | work text song film machine | inner
English | englisch | anglais anglaise | work text song film | inner
expensive more expensive | teuer/teur teurer | cher chère | thing wear oil | alone
heavy heavier | schwer schwerer | lourd lourde | thing | alone
clean cleaner | sauber sauberer | propre propre | room wear open machine | alone
dirty dirtier | schmutzig schmutziger | sale sale | room wear animal open machine | alone
tired | müde/müd | fatigué fatiguée | person animal | alone
happy happier | glücklich glücklicher | heureux heureuse | person | alone
sad sadder | traurig trauriger | triste triste | person song tale film animal | alone
strong stronger | stark stärker | fort forte | person animal | alone
intelligent more intelligent | intelligent intelligenter | intelligent intelligente | person animal | alone
friendly friendlier | freundlich freundlicher | aimable aimable | person | alone
famous more famous | berühmt berühmter | célèbre célèbre | person picture text song film sight | alone
rich richer | reich reicher | riche riche | person | alone
sick | krank | malade malade | person animal | alone
curious more curious | neugierig neugieriger | curieux curieuse | person animal | alone
patient more patient | geduldig geduldiger | patient patiente | person | alone
brave braver | mutig mutiger | courageux courageuse | person animal | alone
fresh fresher | frisch frischer | frais fraîche | food drink | alone
delicious | köstlich | délicieux délicieuse | food drink | alone
warm warmer | warm wärmer | chaud chaude | baked drink wear room | alone
cold colder | kalt kälter | froid froide | food drink room | alone
modern more modern | modern moderner | moderne moderne | machine device inside built | alone
broken | kaputt | cassé cassée | machine device open | alone
empty | leer | vide vide | room open inside | alone
round | rund | rond ronde | wear built | alone
quiet quieter | ruhig ruhiger | calme calme | person animal inside | alone
dangerous more dangerous | gefährlich gefährlicher | dangereux dangereuse | animal machine | alone
interesting more interesting | interessant interessanter | intéressant intéressante | text film picture sight person | alone
"""

ADJECTIVES = tuple(read_adjective(row) for row in read_rows(_ADJECTIVES))
