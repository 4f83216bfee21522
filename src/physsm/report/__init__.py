"""The report of a run: one HTML page, and the figures in it."""
