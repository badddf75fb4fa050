"""What a row depends on, as hashes: stale means that no file of this name exists."""
