"""deepep_normal: DeepEP exchange of the high-throughput mode: tokens to their experts and back."""
