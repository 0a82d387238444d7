"""Section 6.1: beam search, sampling and scoring, and the `Translator`."""
