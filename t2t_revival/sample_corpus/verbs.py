"""Table of verbs, read by `words.read_verb`.

English: base [third past], `+` a particle, `@` the preposition of the object.
German: [prefix+]infinitive [third past [first]], `@` [preposition.]case of the object.
French: infinitive [je il nous ils participle future], `!` for être, `se` for reflexives, `@` the preposition.
"""
# ruff: noqa: E501

from __future__ import annotations

from t2t_revival.sample_corpus.words import EnglishVerb, FrenchVerb, GermanVerb, Verb, read_rows, read_verb

_VERBS = """
sleep sleeps slept | schlafen schläft schlief | dormir dors dort dormons dorment dormi dormir | person animal | place
work | arbeiten | travailler | person | place company manner
sing sings sang | singen singt sang | chanter | person | place company
dance | tanzen | danser | person | place company
play | spielen | jouer | person animal | place company
laugh | lachen | rire ris rit rions rient ri rir | person | place
cry | weinen | pleurer | person | place
swim swims swam | schwimmen schwimmt schwamm | nager | person animal |
cook | kochen | cuisiner | person | place company manner benefit
travel travels travelled | reisen | voyager | person | company
live | wohnen | habiter | person | place state
stay | bleiben bleibt blieb | rester ! | person animal | place
arrive | an+kommen kommt kam | arriver ! | person |
get gets got +up | auf+stehen steht stand | se lever lève lève levons lèvent levé lèver | person |
leave leaves left | weg+gehen geht ging | partir pars part partons partent parti partir ! | person |
come comes came +back | zurück+kommen kommt kam | revenir reviens revient revenons reviennent revenu reviendr ! | person animal |
fall falls fell +asleep | ein+schlafen schläft schlief | se endormir endors endort endormons endorment endormi endormir | person animal |
shop shops shopped | ein+kaufen | faire fais fait faisons font fait fer : les courses | person | company
see sees saw | sehen sieht sah | voir vois voit voyons voient vu verr | person animal : person animal thing wear sight | place
hear hears heard | hören | entendre entends entend entendons entendent entendu entendr | person animal : person animal song | place
find finds found | finden findet fand | trouver | person animal : person animal thing wear | place
love | lieben | aimer | person : person animal sight song tale film | state
hate | hassen | détester | person : person animal text film song | state
know knows knew | kennen kennt kannte | connaître connais connaît connaissons connaissent connu connaîtr | person : person sight song tale film | state
have has had | haben hat hatte | avoir ai a avons ont eu aur | person : thing wear pet | state
buy buys bought | kaufen | acheter achète achète achetons achètent acheté achèter | person : food drink thing wear oil pet | place benefit
sell sells sold | verkaufen | vendre vends vend vendons vendent vendu vendr | person : food drink thing wear oil pet | place
eat eats ate | essen isst aß | manger | person : food | place manner
drink drinks drank | trinken trinkt trank | boire bois boit buvons boivent bu boir | person : drink | place manner
read reads read | lesen liest las | lire lis lit lisons lisent lu lir | person : text | place manner
write writes wrote | schreiben schreibt schrieb | écrire écris écrit écrivons écrivent écrit écrir | person : text | place manner benefit
open | auf+machen | ouvrir ouvre ouvre ouvrons ouvrent ouvert ouvrir | person : open | manner
close | zu+machen | fermer | person : open | manner
turn +on | an+machen | allumer | person : device |
turn +off | aus+machen | éteindre éteins éteint éteignons éteignent éteint éteindr | person : device |
wash | waschen wäscht wusch | laver | person : wear pet food | place manner
clean | putzen | nettoyer nettoie nettoie nettoyons nettoient nettoyé nettoier | person : machine open room | manner
paint | malen | peindre peins peint peignons peignent peint peindr | person : person animal sight picture | place benefit
draw draws drew | zeichnen zeichnet zeichnete | dessiner | person : person animal sight picture | place manner benefit
carry | tragen trägt trug | porter | person : give | manner
wear wears wore | tragen trägt trug | porter | person : wear | state
forget forgets forgot | vergessen vergisst vergaß | oublier | person : person thing wear text song |
lose loses lost | verlieren verliert verlor | perdre perds perd perdons perdent perdu perdr | person : thing wear | place
repair | reparieren | réparer | person : machine device built | place manner
throw throws threw +away | weg+werfen wirft warf | jeter jette jette jetons jettent jeté jetter | person : text wear picture |
invite | ein+laden lädt lud | inviter | person : person |
call | an+rufen ruft rief | appeler appelle appelle appelons appellent appelé appeller | person : person | place
look @at | an+schauen | regarder | person animal : person animal picture wear | place
look @for | suchen | chercher | person animal : person animal thing wear | place
visit | besichtigen | visiter | person : sight | company
meet meets met | treffen trifft traf | rencontrer | person : person | place
greet | begrüßen | saluer | person : person | place
help | helfen hilft half @dat | aider | person : person animal | place
thank | danken @dat | remercier | person : person |
follow | folgen @dat | suivre suis suit suivons suivent suivi suivr | person animal : person animal | manner
answer | antworten @dat | répondre réponds répond répondons répondent répondu répondr @à | person : person |
listen @to | zu+hören @dat | écouter | person : person | place
wait @for | warten @auf.acc | attendre attends attend attendons attendent attendu attendr | person animal : person | place
talk @about | sprechen spricht sprach @über.acc | parler @de | person : person animal text song film sight | place
think thinks thought @of | denken denkt dachte @an.acc | penser @à | person : person animal tale song film sight |
dream @of | träumen @von.dat | rêver @de | person : person animal sight wear tale |
go goes went @to | gehen geht ging @zu.dat | aller vais va allons vont allé ir @à ! | person : inside | company
run runs ran @to | rennen rennt rannte @zu.dat | courir cours court courons courent couru courr @à | person animal : spot |
come comes came @to | kommen kommt kam @zu.dat | venir viens vient venons viennent venu viendr @à ! | person : inside | company
steal steals stole | stehlen stiehlt stahl | voler | person animal : food thing wear | place
hide hides hid | verstecken | cacher | person animal : thing wear text food | place
take takes took | nehmen nimmt nahm | prendre prends prend prenons prennent pris prendr | person : thing wear |
build builds built | bauen | construire construis construit construisons construisent construit construir | person : built | place benefit
admire | bewundern bewundert bewunderte bewundere | admirer | person : person animal sight picture wear | state
photograph | fotografieren | photographier | person : person animal sight | place
describe | beschreiben beschreibt beschrieb | décrire décris décrit décrivons décrivent décrit décrir | person : person animal sight film |
prepare | vor+bereiten | préparer | person : baked | place manner benefit
taste | probieren | goûter | person : food drink | place
tidy +up | auf+räumen | ranger | person : room | manner
give gives gave | geben gibt gab | donner | person : give food drink : person |
show shows showed | zeigen | montrer | person : give wear animal sight : person |
send sends sent | schicken | envoyer envoie envoie envoyons envoient envoyé enverr | person : give wear : person |
bring brings brought | bringen bringt brachte | apporter | person : give food drink wear : person |
lend lends lent | leihen leiht lieh | prêter | person : thing wear : person |
tell tells told | erzählen | raconter | person : tale : person |
say says said | sagen | dire dis dit disons disent dit dir | person | clause
believe | glauben | croire crois croit croyons croient cru croir | person | clause
hope | hoffen | espérer espère espère espérons espèrent espéré espérer | person | clause
forget forgets forgot | vergessen vergisst vergaß | oublier | person | clause
know knows knew | wissen weiß wusste weiß | savoir sais sait savons savent su saur | person | clause
"""

VERBS = tuple(read_verb(row) for row in read_rows(_VERBS))

BE = Verb(
    name="be",
    english=EnglishVerb("be", "is", "was"),
    german=GermanVerb("sein", "bin", "ist", "sind", "war", "waren"),
    french=FrenchVerb("être", "suis", "est", "sommes", "sont", "été", "ser"),
    subjects=frozenset(),
    objects=frozenset(),
    recipients=frozenset(),
    notes=frozenset({"state"}),
)
