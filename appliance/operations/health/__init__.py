"""The health of an installation: one model for console, `rubrica doctor` and alerts."""
