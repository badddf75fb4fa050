"""A module that a test leaves out of what a shard's fingerprint knows."""
