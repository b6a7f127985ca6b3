"""One frozen settings object, each value with its origin."""
