"""What the user writes, read strictly: config.yaml, frameworks.yaml, platforms.yaml and the case files."""
