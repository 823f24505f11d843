"""Power: whoever writes to the database, with a file that an integrator sent in.

The page of a signature trusts roots of files, and so none of a row. The audit tells of
the forged rows all the same.

Source: docs/stamp.md "The page of a signature".
"""

import hashlib
import json
from datetime import UTC, datetime

import pytest

from tests.functional.powers.test_foreign_root import trust
from tests.functional.powers.test_operator_attacks import put, signed_by_operator
from tests.functional.powers.test_signature_page import (
    SIGNED,
    forged,
    look,
    signed_with_code,
)
from tests.support.appliance.appliance import Appliance
from tests.support.documents import pdfs
from tests.support.pki.outside_ca import OutsideCa


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def appliance(request: pytest.FixtureRequest) -> Appliance:
    """An appliance on each database."""
    found: Appliance = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("is_trusted", [False, True], ids=["unknown CA", "own root"])
def test_page_of_a_signature_under_a_root_of_the_writers(
    appliance: Appliance, is_trusted: bool
) -> None:
    """It is not confirmed, whatever root the record trusts; the audit tells."""
    victim = appliance.new_person("Ana Ruiz")
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    with appliance.client(victim) as client:
        signed, _, _ = signed_with_code(appliance, victim, client)
    document = pdfs.one_page("Otro importe")
    request = appliance.new_request(victim, document)
    false = signed_by_operator(document, request, victim.cuil, outside)
    put(appliance, request, false)
    if is_trusted:
        trust(appliance, outside)

    with forged(appliance, request, signed, hashlib.sha256(false).hexdigest()) as code:
        page = look(appliance, code)
        found = appliance.rubrica("audit", "reconcile", "--json")

    assert SIGNED not in page
    *findings, _ = map(json.loads, found.stdout.splitlines())
    told = {each["check"] for each in findings if each["request"] == request}
    assert {"used_without_consent", "version_unrecorded"} <= told
