"""The grey box: constants, initial states and noises of the physics, without a network."""
