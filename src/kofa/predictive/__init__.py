"""Any view, or any of its cells, from what else is known of a sample."""
