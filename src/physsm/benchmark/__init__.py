"""Runs and benchmark jobs: fit, score and store models beside baselines."""
