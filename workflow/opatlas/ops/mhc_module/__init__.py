"""mhc_module: one call site of hyper-connections: residual streams mixed before or after a block."""
