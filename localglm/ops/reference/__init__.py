"""Float64 definition of every operation. Knows numpy only."""
