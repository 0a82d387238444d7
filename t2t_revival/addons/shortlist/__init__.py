"""Translations of pieces, to which CTranslate2 may restrict the tokens of outputs."""
