"""From checked tables to a dataset that others read."""
