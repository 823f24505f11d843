"""What Alembic runs: the connection comes from `appliance.database.migrate`."""

from alembic import context

from appliance.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place: Alembic copies the table.
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
