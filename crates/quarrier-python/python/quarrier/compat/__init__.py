"""Modules that stand in for others, for code that was written to those."""
