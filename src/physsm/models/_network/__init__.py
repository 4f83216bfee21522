"""What trained networks share: scales, observations, training, compiled programs, fitted form."""
