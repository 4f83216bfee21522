"""Training of any network: optimiser, loop and checkpoints; knows no model."""
