"""Shared parts of models with one latent trajectory: encoders, physics, decoder, objective."""
