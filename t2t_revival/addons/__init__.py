"""Add-ons: the core imports nothing from here."""
