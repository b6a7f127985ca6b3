"""Training of the demonstration model. Not installed with the program."""
