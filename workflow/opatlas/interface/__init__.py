"""Whether a framework still has what a backend's runners use of it, read from sources alone."""
