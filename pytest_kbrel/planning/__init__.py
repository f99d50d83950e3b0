"""Plans (``--kb-plan``): requests, time, cost and power of a run that is not made."""
