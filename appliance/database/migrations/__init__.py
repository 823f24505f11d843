"""Alembic migrations; `appliance.database.migrate` runs them."""
