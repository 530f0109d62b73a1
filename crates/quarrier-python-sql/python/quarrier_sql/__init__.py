"""The native half of the package quarrier, with all of SQL. Import quarrier, which finds it."""
