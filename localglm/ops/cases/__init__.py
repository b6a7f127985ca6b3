"""Inputs of the op tests, one file per op family: ordinary, awkward and degenerate."""
