"""Section 6.1: beam search, and a translator around it."""
