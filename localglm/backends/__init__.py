"""Devices that run the op table."""
