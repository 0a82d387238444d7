"""Text with markup: tags and placeholders are taken out before translation and put back by word alignment."""
