"""What cases/ says: sweep grids, model facts, declared precisions and the skip list."""
