"""The time by the database's clock."""

from datetime import datetime

from sqlalchemy import text

from appliance.database.engines import Engines
from appliance.record.unit_of_work import store_faults

_NOW = text("SELECT clock_timestamp()")


async def database_time(engines: Engines) -> datetime | None:
    """Ask the database for the time.

    Args:
        engines: of the record.

    Returns:
        Its time, or None where its clock is this machine's.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    if engines.reader.dialect.name != "postgresql":
        return None
    with store_faults():
        async with engines.reader.connect() as connection:
            found: datetime = (await connection.execute(_NOW)).scalar_one()
    return found
