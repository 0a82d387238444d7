"""Lexical constraints: phrases that outputs must have or must not have, and terms of their lines."""
