"""The native module of the package quarrier, with all of SQL. Import quarrier, which loads it."""
