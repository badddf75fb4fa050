"""What must hold of a dataset's tables before they are published: one file per check."""
