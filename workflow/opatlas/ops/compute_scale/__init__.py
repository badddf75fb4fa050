"""compute_scale: what finding the scale adds to quantising activations to FP8."""
