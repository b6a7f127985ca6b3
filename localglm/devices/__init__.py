"""What this computer has to compute on, and which back end suits it.

Nothing here computes for a model. Every question to a driver or a vendor library is asked in a
child process; this package itself imports none of them.
"""
