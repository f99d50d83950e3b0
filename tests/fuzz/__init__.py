"""Damaged input for all that reads files or replies: `make fuzz`."""
