"""Geometry, weights, state and the layer order. Knows ops and backends.base, never a concrete backend."""
