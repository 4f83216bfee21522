"""The physics language: from a text to a compiled system."""
