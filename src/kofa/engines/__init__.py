"""Where blocks of rows are kept, and how the local step visits them."""
