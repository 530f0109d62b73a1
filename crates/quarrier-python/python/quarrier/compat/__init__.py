"""Modules that stand in for other packages, for code written for those."""
