"""`rubrica setup` tries a bucket, and lets the units reach it."""

import pytest

from appliance.operations.setup.addresses import addresses_of
from appliance.operations.setup.questions import ask_all, look
from appliance.operations.setup.steps import _way_to_bucket
from appliance.operations.setup_answers import Answers
from appliance.settings import DocumentSettings, SettingsError
from tests.support.factories.document_storage import BucketStorage
from tests.support.services.s3 import S3Server
from tests.support.services.tcp_links import DeafLink

LAST = "documents_secret_key_file"
"""What is asked last of a bucket; with it, it is tried."""


def answers_of(server: S3Server, bucket: str, port: int | None = None) -> Answers:
    """Answers for a bucket."""
    tables = server.tables(bucket, port)
    given = {"documents": tables["url"], "documents_endpoint": tables["endpoint"]}
    for key in ("access_key_file", "secret_key_file"):
        given[f"documents_{key}"] = tables[key]
    return Answers.of(given)


def test_bucket_is_tried_at_once(s3_server: S3Server) -> None:
    """An object is written, read and removed; nothing of it is left."""
    bucket = s3_server.new_bucket()

    assert look(answers_of(s3_server, bucket), LAST) == []
    assert look(answers_of(s3_server, bucket), "documents") == []

    assert BucketStorage(s3_server.settings(bucket)).names() == []


def test_bucket_that_will_not_do_is_told(s3_server: S3Server) -> None:
    """Not there, of a store that ignores conditions, or without its key."""
    bucket = s3_server.new_bucket()
    (away,) = look(answers_of(s3_server, "no-such-bucket"), LAST)
    (silent,) = look(answers_of(s3_server, bucket, 1), LAST)
    with DeafLink(s3_server.port) as link:
        (deaf,) = look(answers_of(s3_server, bucket, link.port), LAST)
    keyless = Answers.of({"documents": "s3://docs", LAST: "/nowhere/key"})
    (missing,) = look(keyless, LAST)

    assert "s3://no-such-bucket" in away
    assert "NoSuchBucket" in away
    assert f"s3://{bucket}" in silent
    assert "If-None-Match" in deaf
    assert "/etc/rubrica/secrets/documents-access-key: cannot be read" in missing


def test_person_is_asked_of_a_bucket_only_where_there_is_one(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a folder none of its questions comes."""
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt.partition(" [")[0])
        return ""

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("appliance.operations.setup.questions._LOOKS", {})
    ask_all({}, interactive=True)
    of_a_folder = len(asked)
    ask_all({"documents": f"s3://{s3_server.new_bucket()}"}, interactive=True)

    assert not any("key to it" in each for each in asked[:of_a_folder])
    assert any("key to it" in each for each in asked[of_a_folder:])


def test_units_get_the_key_and_the_way(s3_server: S3Server) -> None:
    """As credentials, and as addresses; this machine is allowed anyway."""
    settings = s3_server.settings(s3_server.new_bucket())
    elsewhere = DocumentSettings.model_validate(
        {**settings.model_dump(), "endpoint": "https://192.0.2.7:9000"}
    )

    access, secret, allowed = _way_to_bucket(elsewhere)

    assert access == f"LoadCredential=access-key:{settings.access_key_file}\n"
    assert secret == f"LoadCredential=secret-key:{settings.secret_key_file}\n"
    assert allowed == "IPAddressAllow=192.0.2.7\n"
    assert addresses_of(settings) == []
    assert len(list(_way_to_bucket(settings))) == 2


def test_store_without_an_address_is_told(s3_server: S3Server) -> None:
    """By its name."""
    settings = s3_server.settings("docs")
    nowhere = settings.model_copy(update={"endpoint": "https://s3.invalid"})

    with pytest.raises(SettingsError, match=r"s3\.invalid: has no address"):
        addresses_of(nowhere)
