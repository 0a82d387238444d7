"""Text encoders: SentencePiece's and T2T's subwords, in Python and in the graph."""
