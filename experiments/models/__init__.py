"""How kofa's model is fitted in the experiments: with its defaults, and as published."""
