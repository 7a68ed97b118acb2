"""A fitted model, applied and read."""
