"""Commands that measure and print tables; never part of the tests."""
