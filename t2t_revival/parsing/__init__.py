"""Constituency trees (section 6.3): reading, cleaning, linearisation and its inverse."""
