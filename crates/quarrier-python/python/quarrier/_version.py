"""The version of the package, equal to the workspace's in Cargo.toml."""

__version__ = "0.1.0"
