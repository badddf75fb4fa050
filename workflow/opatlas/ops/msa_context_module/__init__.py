"""msa_context_module: prefill through a whole block-sparse attention block of MiniMax-M3."""
