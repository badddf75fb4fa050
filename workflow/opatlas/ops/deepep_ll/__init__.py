"""deepep_ll: DeepEP exchange of the low-latency mode: tokens to their experts and back."""
