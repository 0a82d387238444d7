"""Choice among the outputs that a search has found."""
