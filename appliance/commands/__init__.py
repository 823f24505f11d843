"""The `rubrica` command line."""
