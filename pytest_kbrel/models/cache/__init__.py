"""Response cache: in one SQLite file between runs, and in a temporary one within a session."""
