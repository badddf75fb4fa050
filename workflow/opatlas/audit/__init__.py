"""Whether published datasets still are what they say, and where each of their rows comes from."""
