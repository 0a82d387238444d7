"""Data (section 5.1): from sources to shards to batches of ids."""
