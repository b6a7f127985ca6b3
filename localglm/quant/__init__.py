"""Block formats: layout, float decode, and the integer arithmetic of docs/design/arithmetic.md.

Knows numpy only.
"""
