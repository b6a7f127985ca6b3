"""From trained parameters to model files."""
