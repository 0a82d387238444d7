"""Back-translation (Sennrich et al., 2016): sources that a reverse model makes for text without any."""
