"""Scores and predictions of held-out samples as tables, and what these say."""
