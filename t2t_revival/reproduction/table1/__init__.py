"""Table 1: time, operations and path lengths of layer types."""
