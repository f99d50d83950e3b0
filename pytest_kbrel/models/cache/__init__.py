"""Response cache between runs, in one SQLite file."""
