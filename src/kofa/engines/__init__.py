"""Where blocks of rows live, and how the local step visits them."""
