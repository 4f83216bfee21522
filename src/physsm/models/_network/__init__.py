"""What all trained networks share: scales, observations, training, compiled programs, fitted form."""
