"""nccl: one collective of NCCL between the GPUs of a node."""
