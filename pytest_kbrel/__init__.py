"""Gate language-model checkpoints on how reliable their factual knowledge is."""

__version__ = "0.1.0"

# Part of every fingerprint: raise it when a change makes the same responses score differently.
SCORING_VERSION = 5
