"""Alembic migrations; `appliance.storage.migrate` runs them."""
