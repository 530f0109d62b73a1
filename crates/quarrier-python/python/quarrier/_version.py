"""The version of the package: that of the workspace in Cargo.toml."""

__version__ = "0.1.0"
