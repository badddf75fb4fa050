"""From the rows of shards to the published tables."""
