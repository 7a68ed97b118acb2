"""Coordinate ascent on the lower bound. Arrays only: no tables, no names of kinds."""
