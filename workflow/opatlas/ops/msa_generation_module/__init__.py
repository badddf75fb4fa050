"""msa_generation_module: one decode step through a whole block-sparse attention block of MiniMax-M3."""
