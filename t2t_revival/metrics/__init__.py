"""Scores of texts beside references, without a model: BLEU, chrF, brackets of trees."""
