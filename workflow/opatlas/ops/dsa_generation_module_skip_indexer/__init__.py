"""dsa_generation_module_skip_indexer: dsa_generation_module in a layer that takes the last top-k choice."""
