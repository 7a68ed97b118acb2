"""From the tables of users to arrays, and back."""
