"""Codes of languages as the pieces of multilingual models: "fi" as "__fi__" or "fin_Latn"."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_revival.errors import T2TError, did_you_mean

ISO_639 = """
af:afr ak:aka am:amh ar:arb as:asm ay:ayr az:azj ba:bak be:bel bg:bul bm:bam bn:ben bo:bod bs:bos ca:cat
cs:ces cy:cym da:dan de:deu dz:dzo ee:ewe el:ell en:eng eo:epo es:spa et:est eu:eus fa:pes ff:fuv fi:fin
fj:fij fo:fao fr:fra ga:gle gd:gla gl:glg gn:grn gu:guj ha:hau he:heb hi:hin hr:hrv ht:hat hu:hun hy:hye
id:ind ig:ibo is:isl it:ita ja:jpn jv:jav ka:kat kg:kon ki:kik kk:kaz km:khm kn:kan ko:kor ks:kas ku:kmr
ky:kir lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit lv:lvs mg:plt mi:mri mk:mkd ml:mal mn:khk mr:mar ms:zsm
mt:mlt my:mya nb:nob ne:npi nl:nld nn:nno no:nob ny:nya oc:oci om:gaz or:ory pa:pan pl:pol ps:pbt pt:por
qu:quy rn:run ro:ron ru:rus rw:kin sa:san sc:srd sd:snd sg:sag si:sin sk:slk sl:slv sm:smo sn:sna so:som
sq:als sr:srp ss:ssw st:sot su:sun sv:swe sw:swh ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn
tr:tur ts:tso tt:tat tw:twi ug:uig uk:ukr ur:urd uz:uzn vi:vie wo:wol xh:xho yi:ydd yo:yor zh:zho zu:zul"""
OF_M2M100 = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht
hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl
ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"""
M2M100_CODES = {
    "m2m100": OF_M2M100.split(),
    "wmt21": ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"],
}  # by language_codes
NLLB_CODES = dict(pair.split(":") for pair in ISO_639.split())  # two letters: NLLB's three


def language_piece(code: str, pieces: Sequence[str], flag: str) -> str:
    """Returns the piece of a language.

    Args:
        code: such as "fi", "zh_Hans" or "fin_Latn".
        pieces: of the model's languages.
        flag: name of the flag that gives a language, for errors.

    Raises:
        T2TError: the model lacks it, or has it in several scripts.
    """
    language, separator, script = code.partition("_")
    begins = f"{NLLB_CODES.get(language, language)}_{script}"
    exact = [piece for piece in (code, f"__{code}__", f"__{language}__") if piece in pieces]
    found = exact[:1] or [piece for piece in pieces if piece.startswith(begins)]
    if len(found) == 1:
        return found[0]
    if found:
        raise T2TError(f"{code!r} has several scripts in the model: give --{flag}={' or '.join(found)}")
    known = [piece.strip("_") for piece in pieces]
    near = did_you_mean(begins if separator else code, known, "language of the model")
    raise T2TError(f"--{flag}: {near}")
