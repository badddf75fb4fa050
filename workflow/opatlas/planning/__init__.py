"""From case files to the cases of a dataset and their shards; no framework, no GPU, no image."""
