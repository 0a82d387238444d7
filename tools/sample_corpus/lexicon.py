"""Tables of nouns, adjectives and verbs, read by `words.read_noun`, `read_adjective` and `read_verb`.

Classes of a noun determine its verbs and adjectives: "person", "animal", "food", "drink", "thing", "wear",
"text" (written), "give" (given), "inside" (a place to be in), "spot" (a place to be near), and finer ones.
In French, `<` marks adjectives before their noun. The cells of verbs are

    English: base [third past], `+` a particle, `@` the preposition of the object
    German: [prefix+]infinitive [third past [first]], `@` [preposition.]case of the object
    French: infinitive [je il nous ils participle future], `!` être, `se` reflexive, `@` the preposition
"""
# ruff: noqa: E501

from __future__ import annotations

from tools.sample_corpus.words import (
    EnglishVerb,
    FrenchVerb,
    GermanVerb,
    Verb,
    read_adjective,
    read_noun,
    read_rows,
    read_verb,
)

_NOUNS = """
man men | m Mann +es Männer | m homme | person looks
woman women | f Frau +en | f femme | person looks
child children | n Kind +es +er | m enfant | person looks
boy | w Junge +n | m garçon | person looks
girl | n Mädchen +s = | f fille | person looks
teacher | m Lehrer +s = | m professeur | person work
doctor | m Arzt +es Ärzte | m médecin | person work
nurse | f Krankenschwester +n | f infirmière | person work
farmer | w Bauer +n | m fermier | person work
student | w Student +en | m étudiant | person work
friend | m Freund +es +e | m ami | person
neighbour | w Nachbar +n | m voisin | person
baker | m Bäcker +s = | m boulanger | person work
queen | f Königin +nen | f reine | person looks
king | m König +s +e | m roi | person looks
policeman policemen | w Polizist +en | m policier | person work
artist | m Künstler +s = | m artiste | person work
writer | m Schriftsteller +s = | m écrivain | person work
actress actresses | f Schauspielerin +nen | f actrice | person work looks
singer | m Sänger +s = | m chanteur | person work
mother | f Mutter Mütter | f mère | person
father | m Vater +s Väter | m père | person
brother | m Bruder +s Brüder | m frère | person
sister | f Schwester +n | f sœur | person
uncle | m Onkel +s = | m oncle | person
aunt | f Tante +n | f tante | person
lawyer | m Anwalt +s Anwälte | m avocat | person work
waitress waitresses | f Kellnerin +nen | f serveuse | person work
engineer | m Ingenieur +s +e | m ingénieur | person work
hero heroes | w Held +en | m héros héros | person looks
princess princesses | f Prinzessin +nen | f princesse | person looks
tourist | w Tourist +en | m touriste | person
dog | m Hund +es +e | m chien | animal pet
cat | f Katze +n | m chat | animal pet
horse | n Pferd +es +e | m cheval chevaux | animal pet
bird | m Vogel +s Vögel | m oiseau oiseaux | animal
cow | f Kuh Kühe | f vache | animal pet
mouse mice | f Maus Mäuse | f souris souris | animal
lion | w Löwe +n | m lion | animal
elephant | w Elefant +en | m éléphant | animal
bear | w Bär +en | m ours ours | animal
hedgehog | m Igel +s = | m hérisson | animal
owl | f Eule +n | m hibou hiboux | animal
duck | f Ente +n | m canard | animal
rabbit | n Kaninchen +s = | m lapin | animal pet
apple | m Apfel +s Äpfel | f pomme | food give
orange | f Orange +n | f orange | food give
egg | n Ei +es +er | m œuf | food
cake | m Kuchen +s = | m gâteau gâteaux | food give baked
pear | f Birne +n | f poire | food give
tomato tomatoes | f Tomate +n | f tomate | food
lemon | f Zitrone +n | m citron | food
sausage | f Wurst Würste | f saucisse | food
strawberry strawberries | f Erdbeere +n | f fraise | food
banana | f Banane +n | f banane | food give
bread | n Brot +es | m pain | food mass baked
cheese | m Käse +s | m fromage | food mass
meat | n Fleisch +es | f viande | food mass
soup | f Suppe | f soupe | food mass
honey | m Honig +s | m miel | food mass
rice | m Reis +es | m riz | food mass
butter | f Butter | m beurre | food mass
water | n Wasser +s | f eau | drink mass
milk | f Milch | m lait | drink mass
coffee | m Kaffee +s | m café | drink mass
tea | m Tee +s | m thé | drink mass
wine | m Wein +s | m vin | drink mass
beer | n Bier +s | f bière | drink mass
juice | m Saft +es | m jus | drink mass
oil | n Öl +s | f huile | mass oil
book | n Buch +es Bücher | m livre | thing text give good
letter | m Brief +es +e | f lettre | thing text give long
newspaper | f Zeitung +en | m journal journaux | thing text give
poem | n Gedicht +s +e | m poème | text long good
story stories | f Geschichte +n | f histoire | text long good tale
song | n Lied +es +er | f chanson | long good song
film | m Film +s +e | m film | long good film
door | f Tür +en | f porte | open built
window | n Fenster +s = | f fenêtre | open built
box boxes | f Schachtel +n | f boîte | thing open
bottle | f Flasche +n | f bouteille | thing open
car | n Auto +s +s | f voiture | thing machine
bicycle | n Fahrrad +es Fahrräder | m vélo | thing machine
boat | n Boot +es +e | m bateau bateaux | thing built
table | m Tisch +es +e | f table | thing built
chair | m Stuhl +es Stühle | f chaise | thing built
lamp | f Lampe +n | f lampe | thing device
clock | f Uhr +en | f horloge | thing machine
picture | n Bild +es +er | m tableau tableaux | thing picture give
photo | n Foto +s +s | f photo | thing picture give
map | f Karte +n | f carte | thing picture give
key | m Schlüssel +s = | f clé | thing give
knife knives | n Messer +s = | m couteau couteaux | thing long
bag | f Tasche +n | m sac | thing open
piano | n Klavier +s +e | m piano | thing machine
guitar | f Gitarre +n | f guitare | thing machine
flower | f Blume +n | f fleur | thing give
gift | n Geschenk +s +e | m cadeau cadeaux | thing give
umbrella | m Regenschirm +s +e | m parapluie | thing give
computer | m Computer +s = | m ordinateur | thing device machine
telephone | n Telefon +s +e | m téléphone | thing machine
hat | m Hut +es Hüte | m chapeau chapeaux | wear
coat | m Mantel +s Mäntel | m manteau manteaux | wear long
dress dresses | n Kleid +es +er | f robe | wear long
shirt | n Hemd +es +en | f chemise | wear
jacket | f Jacke +n | f veste | wear
skirt | m Rock +es Röcke | f jupe | wear long
scarf scarves | m Schal +s +s | f écharpe | wear long
shoe | m Schuh +s +e | f chaussure | wear
boot | m Stiefel +s = | f botte | wear
house | n Haus +es Häuser | f maison | inside spot built sight
garden | m Garten +s Gärten | m jardin | inside spot sight
kitchen | f Küche +n | f cuisine | inside room
school | f Schule +n | f école | inside spot built
city cities | f Stadt Städte | f ville | inside spot sight
village | n Dorf +es Dörfer | m village | inside spot sight
forest | m Wald +es Wälder | f forêt | inside spot
park | m Park +s +s | m parc | inside spot sight
hotel | n Hotel +s +s | m hôtel | inside spot built
hospital | n Krankenhaus +es Krankenhäuser | m hôpital hôpitaux | inside spot built
office | n Büro +s +s | m bureau bureaux | inside room
restaurant | n Restaurant +s +s | m restaurant | inside spot
church churches | f Kirche +n | f église | inside spot built sight
library libraries | f Bibliothek +en | f bibliothèque | inside spot built sight
museum | n Museum +s Museen | m musée | inside spot sight
castle | n Schloss +es Schlösser | m château châteaux | inside spot built sight
room | n Zimmer +s = | f chambre | inside room
theatre | n Theater +s = | m théâtre | inside spot built
bakery bakeries | f Bäckerei +en | f boulangerie | inside spot
factory factories | f Fabrik +en | f usine | inside spot built sight
bridge | f Brücke +n | m pont | spot built sight
tree | m Baum +es Bäume | m arbre | spot
"""

NOUNS = tuple(read_noun(row) for row in read_rows(_NOUNS))

# French words whose h forbids elision and liaison.
ASPIRATED = frozenset({"héros", "hérisson", "hérissons", "hibou", "hiboux"})

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
