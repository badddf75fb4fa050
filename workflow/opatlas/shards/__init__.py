"""A shard's rows and failures: which exist, which are missing, and the file that holds them."""
