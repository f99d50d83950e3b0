"""Answers of models kept from run to run, in one SQLite file."""
