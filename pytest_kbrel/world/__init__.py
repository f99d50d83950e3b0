"""A suite of facts about the world, made from installed packages."""
