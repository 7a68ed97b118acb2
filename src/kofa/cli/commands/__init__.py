"""The commands, as users call them. They import what they need when they run."""
