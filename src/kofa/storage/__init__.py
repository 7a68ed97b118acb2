"""Model files and checkpoints: one file each, without code in it, written whole or not at all."""
