"""Shared parts of baselines: origins, lag grids, state columns, trajectory fits, tracks."""
