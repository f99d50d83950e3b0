"""Tables of the probes, metrics, gate rules and verdicts. They import records and bounds only."""
