"""Alembic migrations; `appliance.core.database.migrate` runs them."""
