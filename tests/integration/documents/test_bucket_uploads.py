"""Uploads that nobody finished are removed; requests are signed as others sign them."""

import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from appliance.documents.s3.abandoned_uploads import UnfinishedUploads
from appliance.documents.s3.blob_store import S3BlobStore
from appliance.documents.s3.bucket import Bucket
from appliance.domain.errors import DocumentsAwayError
from appliance.domain.ids import IntegratorId
from appliance.settings import DocumentSettings
from tests.support.factories.document_storage import BucketStorage
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.services.s3 import S3Server

DAY = timedelta(days=1)
ONE = IntegratorId("00000000-0000-4000-8000-000000000001")


def begin_upload(server: S3Server, key: str) -> None:
    """What a writer does that is killed after it."""
    url = f"http://127.0.0.1:{server.port}/{quote(key)}?uploads"
    request = urllib.request.Request(url, method="POST")
    with urllib.request.urlopen(request) as answer:  # noqa: S310 (ours)
        assert answer.status == 200


def uploads_of(server: S3Server, bucket: str) -> list[str]:
    """Keys of the uploads that are begun and not finished."""
    url = f"http://127.0.0.1:{server.port}/{bucket}?uploads"
    with urllib.request.urlopen(url) as answer:
        found = ET.fromstring(answer.read())  # noqa: S314 (same)
    return [each.text or "" for each in found.iterfind("{*}Upload/{*}Key")]


async def test_unfinished_uploads_are_removed(s3_server: S3Server) -> None:
    """Of this prefix, and old ones; what is finished stays.

    The server says of each that it was begun on 10 November 2010.
    """
    bucket = s3_server.new_bucket()
    place = BucketStorage(s3_server.settings(f"{bucket}/docs"))
    documents = S3BlobStore(place.bucket, FixedDocumentKeys())
    await documents.put(ONE, bytes(12_000_000))
    names = place.names()
    for key in (f"{bucket}/docs/a/b+c.pdf", f"{bucket}/docs2/d.pdf"):
        begin_upload(s3_server, key)
    begun = datetime(2010, 11, 10, tzinfo=UTC)

    young = await documents.clear(begun)
    old = await documents.clear(begun + DAY)

    assert (young, old) == (0, 1)
    assert uploads_of(s3_server, bucket) == ["docs2/d.pdf"]
    assert place.names() == names


def test_store_that_is_away_is_told(s3_server: S3Server) -> None:
    """As by any other request."""
    with pytest.raises(DocumentsAwayError):
        Bucket(s3_server.settings("docs", 1)).abandon_uploads(datetime.now(UTC))
    with pytest.raises(DocumentsAwayError):
        Bucket(s3_server.settings("no-such-bucket")).abandon_uploads(datetime.now(UTC))


@pytest.mark.parametrize("style", ["path", "virtual"])
@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/docs/?prefix=a%2Fb%2F&uploads="),
        ("DELETE", "/docs/a/b%2Bc%20d.pdf?uploadId=x%2By%3D%3D"),
    ],
)
def test_requests_are_signed_as_the_sdk_signs_them(
    tmp_path: Path, style: str, method: str, target: str
) -> None:
    """Byte by byte, by botocore."""
    (tmp_path / "id").write_text("AKIAIOSFODNN7EXAMPLE\n")
    (tmp_path / "key").write_text("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n")
    settings = DocumentSettings.model_validate(
        {
            "url": "s3://docs/a/b",
            "endpoint": "https://s3.example:9000",
            "region": "sa-east-1",
            "address_style": style,
            "access_key_file": tmp_path / "id",
            "secret_key_file": tmp_path / "key",
        }
    )
    at = datetime(2026, 11, 24, 9, 0, 0, tzinfo=UTC)

    headers = UnfinishedUploads(settings, 5).signed(method, target, at)

    request = AWSRequest(
        method,
        f"{settings.address}{target}",
        headers={
            "host": headers["host"],
            "x-amz-date": headers["x-amz-date"],
            "x-amz-content-sha256": headers["x-amz-content-sha256"],
        },
    )
    request.context["timestamp"] = headers["x-amz-date"]
    credentials = Credentials(
        "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    )
    sdk = S3SigV4Auth(credentials, "s3", "sa-east-1")
    theirs = sdk.signature(
        sdk.string_to_sign(request, sdk.canonical_request(request)), request
    )
    assert headers["authorization"].endswith(f"Signature={theirs}")
