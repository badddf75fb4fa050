"""mla_context_module: prefill through a whole latent-attention block, projections included."""
