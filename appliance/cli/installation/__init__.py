"""Commands around one installation: made, migrated, checked."""
