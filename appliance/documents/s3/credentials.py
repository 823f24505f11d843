"""The key to a bucket, from the files that the settings name."""

from dataclasses import dataclass, field

from appliance.database.password_files import read_password
from appliance.settings import DocumentSettings, SettingsError


@dataclass(frozen=True, slots=True)
class BucketAccess:
    """A bucket, and the key that its requests are signed with."""

    bucket: str
    prefix: str
    """Of all names; empty, or without a `/` at its ends."""
    key_id: str
    secret: str = field(repr=False)


def read_access(settings: DocumentSettings) -> BucketAccess:
    """Read the key.

    Args:
        settings: with a `url`.

    Raises:
        SettingsError: it, or a file of the key, is missing or cannot be used.
    """
    access, secret = settings.access_key_file, settings.secret_key_file
    if settings.bucket is None or access is None or secret is None:
        msg = "documents.url: is missing, or the files of the key to it"
        raise SettingsError(msg)
    return BucketAccess(*settings.bucket, read_password(access), read_password(secret))
