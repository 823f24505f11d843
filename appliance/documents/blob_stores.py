"""Documents where the settings have them: in a folder, or in a bucket."""

from appliance.documents.local.blob_store import LocalBlobStore
from appliance.documents.local.folder_mark import (
    DocumentMark,
    MarkedFolder,
    MarkedPlace,
    mark_place,
)
from appliance.documents.s3.blob_store import S3BlobStore
from appliance.documents.s3.bucket import Bucket
from appliance.documents.s3.bucket_mark import BucketMark, MarkedBucket
from appliance.domain.ports import BlobMaintenance, DocumentKeys
from appliance.record.unit_of_work import Database
from appliance.settings import Settings


def document_store(
    settings: Settings, store: Database, keys: DocumentKeys
) -> BlobMaintenance:
    """What keeps documents.

    Args:
        settings: of the installation.
        store: the record.
        keys: of the integrators' documents.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """
    documents = settings.documents
    if documents.url is not None:
        mark = BucketMark(store, documents)
        return S3BlobStore(Bucket(documents), keys, mark)
    folder = settings.documents_dir
    return LocalBlobStore(
        folder,
        keys,
        documents.reserve_bytes,
        documents.intake_room_bytes,
        DocumentMark(store, folder),
    )


async def mark_documents(settings: Settings, store: Database) -> str:
    """Have the place of documents bear the installation's mark; see `mark_place`.

    Returns:
        Its name where it was marked now, else nothing.

    Raises:
        SettingsError: it is another one's, not mounted, or cannot be written to.
        ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
    """
    place: MarkedPlace = MarkedFolder(settings.documents_dir)
    where = str(settings.documents_dir)
    if settings.documents.url is not None:
        place, where = MarkedBucket(Bucket(settings.documents)), settings.documents.url
    return where if await mark_place(store, place) else ""
