"""A run against a served model that was killed goes on where it stopped."""
