"""What a run would ask, cost and be able to find, without running it (``--kb-plan``)."""
