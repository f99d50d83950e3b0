"""What is kept while a run is made, in one SQLite file that all its processes share."""
