"""Table of nouns, read by `words.read_noun`.

Classes determine the verbs and adjectives of a noun: "person", "animal", "food", "drink", "thing", "wear",
"text" (written), "give" (given), "inside" (a place to be in), "spot" (a place to be near), and finer ones.
"""

from __future__ import annotations

from t2t_revival.sample_corpus.words import read_noun, read_rows

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
