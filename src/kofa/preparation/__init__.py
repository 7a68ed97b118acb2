"""From declarations and tables to what inference sees, once in a fit."""
