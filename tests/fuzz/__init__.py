"""Runs of the plugin over damaged input: `make fuzz`, docs/fuzzing.md."""
