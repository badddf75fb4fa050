"""scale_matrix: activations quantised to FP8 with a scale that is known."""
