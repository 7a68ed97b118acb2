"""Random problems, commands and files that must not end in an error of others."""
