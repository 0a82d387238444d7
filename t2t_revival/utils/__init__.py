"""Files, locks, checked JSON, CSV tables, descriptions of fields."""
