"""Checks of this machine: what is here, what fits, what is wrong and what to do about it."""
