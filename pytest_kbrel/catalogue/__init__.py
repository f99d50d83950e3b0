"""What a probe, a metric, a gate rule and a verdict is, each said once: tables that import records only."""
