"""custom_allreduce: the framework's own all-reduce between the GPUs of a node."""
