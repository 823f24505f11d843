"""A backup as a file of this machine, wherever it lies.

    with fetched(where, config.bucket, "bucket") as path:
        …

What a bucket has is copied whole, and its hash compared, before anything is made of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from appliance.operations.backup.bucket_destination import BucketDestination
from appliance.operations.backup.buckets import Where, bucket_of
from appliance.operations.backup.names import BackupName
from appliance.operations.backup.work_folder import WORK, remove_dead, work_folder
from appliance.settings import SettingsError

_WORK_PREFIX: Final = "rubrica-fetch-"


@contextmanager
def fetched(where: Where, table: Mapping[str, Any], at: str) -> Iterator[Path]:
    """A backup as a file of this machine, while the block lasts.

    Args:
        where: a file's name, or `s3://bucket/prefix/NAME`.
        table: how that bucket is reached.
        at: the table's name, for what is told.

    Raises:
        SettingsError: see `BucketDestination.fetch`.
    """
    if isinstance(where, Path):
        yield where
        return
    url, _, file = where.rpartition("/")
    if BackupName.of(file) is None:
        msg = f"{where}: is no backup's name; rubrica restore --list tells them"
        raise SettingsError(msg)
    place = BucketDestination(bucket_of(url, table, at))
    remove_dead(WORK, f"{_WORK_PREFIX}*", datetime.now(UTC))
    with work_folder(_WORK_PREFIX) as work:
        path = work / file
        place.fetch(file, path)
        yield path
