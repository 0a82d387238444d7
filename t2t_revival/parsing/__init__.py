"""Constituency trees (section 6.3): read, cleaned, written as a sequence of tokens, and back."""
