"""What models of one latent trajectory share: encoders, physics, decoder, objective."""
