"""Prefill, decode, sampling and the worker process behind one typed protocol."""
