"""Tables that outgrow memory: one command for each figure, each in a process of its own."""
