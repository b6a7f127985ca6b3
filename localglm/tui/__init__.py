"""The full-screen chat; it speaks to the engine through ``engine.client`` and ``protocol``."""
