"""Tables to panels, splits, windows and batches, and forecasts back to tables."""
