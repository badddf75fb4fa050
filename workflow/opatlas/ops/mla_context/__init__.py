"""mla_context: prefill attention of a latent-attention layer, projections left out."""
