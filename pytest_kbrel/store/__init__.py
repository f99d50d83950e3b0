"""SQLite files that processes share; one of them has what is kept while a run is made."""
