"""Lines on their way: inputs, batches, searches, outputs."""
