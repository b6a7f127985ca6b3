"""Geometry, weights, state and the layer order. Knows ops and backends.base.

Never a concrete backend.
"""
