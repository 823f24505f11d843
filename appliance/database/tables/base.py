"""What all tables share: the metadata they stand in, and the types of their ids."""

from sqlalchemy import BigInteger, Integer, MetaData, String

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Id = String(36)

# SQLite numbers rows by itself only for a column that is exactly INTEGER.
Serial = BigInteger().with_variant(Integer(), "sqlite")
