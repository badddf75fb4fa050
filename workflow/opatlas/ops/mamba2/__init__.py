"""mamba2: state-space layer: convolution and scan."""
