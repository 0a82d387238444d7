"""The paper's tables and figures, made again: what `t2t-reproduce` runs."""
