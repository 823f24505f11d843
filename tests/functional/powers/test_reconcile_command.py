"""`rubrica audit reconcile` on appliances that signed: honest, and after SQL."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.functional.powers.test_signature_page import (
    alter,
    forged,
    signed_with_code,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def appliance(request: pytest.FixtureRequest) -> Appliance:
    """An appliance on each database."""
    found: Appliance = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def signer(appliance: Appliance) -> TestPerson:
    """Somebody who can sign there."""
    return appliance.new_person()


@pytest.fixture(scope="module")
def client(appliance: Appliance, signer: TestPerson) -> Iterator[httpx.Client]:
    """The signer's client."""
    with appliance.client(signer) as opened:
        yield opened


def test_forged_signature_is_found_and_named(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """By both commands, as lines and as JSON; an honest record has nothing."""
    signed, _, sha256 = signed_with_code(appliance, signer, client)
    request = appliance.new_request(signer, pdfs.one_page())
    honest = appliance.rubrica("audit", "verify")
    assert honest.returncode == 0, honest.stdout
    assert honest.stdout.endswith(": all explained\n")

    with forged(appliance, request, signed, sha256):
        found = appliance.rubrica("audit", "reconcile", "--json")
        verified = appliance.rubrica("audit", "verify")
        chains = appliance.rubrica("audit", "verify", "--chains-only")
        kept = alter(appliance, "SELECT value FROM installation WHERE name = 'audit'")
    after = appliance.rubrica("audit", "reconcile", "--since", "2020-01-01")

    assert (found.returncode, verified.returncode) == (1, 1)
    *findings, counts = map(json.loads, found.stdout.splitlines())
    assert {each["check"] for each in findings} == {
        "signature_unrecorded",
        "used_without_consent",
        "version_unrecorded",
    }
    assert {each["request"] for each in findings} == {request}
    assert counts["findings"] == len(findings)
    assert f"request {request}, " in verified.stdout
    assert verified.stdout.endswith(f"{len(findings)} unexplained\n")
    assert json.loads(kept[0])["findings"] == len(findings)
    assert chains.returncode == 0
    assert after.returncode == 0, after.stdout


def test_use_of_a_key_names_key_and_certificate(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """In both rows, as the credential has them."""
    request, _, _ = signed_with_code(appliance, signer, client)
    query = (
        "SELECT c.spki_sha256, k.serial FROM activation_item i "
        "JOIN activation a ON a.id = i.activation "
        "JOIN credential c ON c.id = a.credential "
        "JOIN certificate k ON k.credential = c.id WHERE i.request = :request"
    )
    spki, serial = alter(appliance, query, request=request)

    for event in ("key.intended", "key.used"):
        row = (
            "SELECT detail FROM audit_event WHERE request = :request AND event = :event"
        )
        (told,) = alter(appliance, row, request=request, event=event)
        detail = json.loads(told)
        assert (detail["spkiSha256"], detail["serial"]) == (spki, serial)
