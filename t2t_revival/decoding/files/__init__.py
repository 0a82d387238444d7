"""Files of outputs: resumed, in parts, in shards."""
