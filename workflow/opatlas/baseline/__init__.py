"""How a dataset differs from an older one, or from anybody's tables of the same names and columns."""
