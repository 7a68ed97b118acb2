"""What kofa costs: time, memory and size of files."""
