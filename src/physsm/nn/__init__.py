"""Layers and solvers: S5, recurrent layers, attention, differential equations, perceptrons."""
