"""The search for outputs, as a graph: beams, their scores and guards, sampling."""
