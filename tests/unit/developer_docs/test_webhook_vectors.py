"""The vectors of the webhooks' page, by the library of others."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from appliance.developer_docs.webhook_vectors import (
    WebhookVector,
    vectors,
    vectors_file,
)


@pytest.mark.parametrize("vector", vectors(), ids=lambda each: each.name)
def test_library_signs_what_is_valid_and_nothing_else(vector: WebhookVector) -> None:
    """Its signature is among those given exactly where the vector says so."""
    at = datetime.fromtimestamp(int(vector.headers["webhook-timestamp"]), UTC)
    made = Webhook(vector.secret).sign(vector.headers["webhook-id"], at, vector.body)

    given = vector.headers["webhook-signature"].split(" ")
    assert (made in given) == vector.is_valid


def test_vectors_stay_as_they_are() -> None:
    """Whoever has copied one finds it again."""
    plain, _, both = vectors()[:3]

    signature = "v1,fYgYHMGYCVFGJesFN+nRYAzEEm5Xe8KBHYk7wojp0w4="
    assert plain.headers["webhook-signature"] == signature
    assert both.headers["webhook-signature"].split(" ")[1] == signature


def test_file_has_all_of_them() -> None:
    """With names that tell good from bad."""
    told = json.loads(vectors_file())

    assert [each["nombre"] for each in told] == [each.name for each in vectors()]
    assert {each["valido"] for each in told} == {True, False}
