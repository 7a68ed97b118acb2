"""What a model found as one HTML file, which opens from the disk and needs no network."""
