"""Whoever can write to the database trusts a root there; signing hosts do not.

Chains of outside CAs sign under roots that the host's operator pinned. Until an upgrade
is closed, roots of the record count as well, so that chains of before sign on.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from sqlalchemy import insert

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.ids import new_id
from appliance.domain.people.identity import Credential
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.vocab import StatementFault
from appliance.keys.credential_store import join
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign, signed_pdf
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid
from tests.support.faults.altered_rows import altered
from tests.support.faults.fault_injection import harmed
from tests.support.pki.outside_ca import OutsideCa, bundle, der, named


@pytest.fixture(scope="module")
def appliance_with_keys() -> Iterator[Appliance]:
    """On SQLite, as it is after an upgrade: no format is pinned."""
    with harmed(signing="workers = 1") as appliance:
        format_file(appliance).unlink(missing_ok=True)
        yield appliance


def format_file(appliance: Appliance) -> Path:
    """The file that closes an upgrade."""
    return appliance.settings.activation_format_file


def trust(appliance: Appliance, ca: OutsideCa) -> None:
    """Write a root to the trust store, as a writer of the database does."""
    now = datetime.now(UTC)

    async def add(front: ServiceRegistry) -> None:
        async with front.core.store.write() as transaction:
            await transaction.connection.execute(
                insert(tables.trust_anchor).values(
                    id=new_id(),
                    certificate=der(ca.root),
                    sha256=ca.root.fingerprint(hashes.SHA256()).hex(),
                    purpose=AnchorPurpose.SIGNERS.value,
                    not_after=ca.root.not_valid_after_utc,
                    added=now,
                )
            )

    appliance.do(add)


def refused(appliance: Appliance, person: TestPerson) -> None:
    """Nothing is signed, and the record says why."""
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        problem(sign(client, person, request), 409, "CERTIFICATE_NOT_USABLE")
    told = appliance.rubrica("request", "audit", str(request)).stdout
    assert StatementFault.ISSUER.value in told


def certified(
    key: Credential, person: TestPerson, ca: OutsideCa, name: str
) -> dict[str, bytes]:
    """Columns of a certificate by an outside CA, over that key."""
    made = ca.certify(key.spki, person.cuil, subject=named(name, f"CUIL {person.cuil}"))
    return {"certificate": der(made), "chain": join((der(ca.issuing),))}


def test_root_counts_by_the_pin_of_the_host(
    appliance_with_keys: Appliance, tmp_path: Path
) -> None:
    """From the trust store to the pin; what is shown is what the certificate has."""
    appliance = appliance_with_keys
    person = appliance.new_person("Ana Pérez")
    key = appliance.credential(person)
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    sha256 = outside.root.fingerprint(hashes.SHA256()).hex()
    file = tmp_path / "root.pem"
    file.write_bytes(bundle(outside.root))
    values = certified(key, person, outside, "PEREZ, ANA MARIA")

    def anchors(*words: str) -> tuple[int, str]:
        done = appliance.rubrica("hsm", "anchors", *words)
        return done.returncode, done.stdout + done.stderr

    with altered(appliance, tables.credential, key.id, **values):
        # Neither the record nor the host knows the root.
        refused(appliance, person)
        trust(appliance, outside)
        # As it was before an upgrade: the record's root lets it sign.
        with appliance.client(person) as client:
            request = appliance.new_request(person, pdfs.one_page())
            pdf = signed_pdf(client, person, request)
        assert pyhanko_valid(pdf, [der(outside.root), *appliance.roots])
        assert "PEREZ, ANA MARIA".encode("utf-16-be") in pdf or b"PEREZ" in pdf
        status, said = anchors("--check")
        assert (status, sha256 in said) == (1, True)

        format_file(appliance).write_text("2\n")
        try:
            refused(appliance, person)
            assert anchors("--pin", "00" * 32)[0] == 1
            assert anchors("--pin", "00" * 32, "--file", str(file))[0] == 1
            assert anchors("--pin", sha256[:40])[0] == 1
            refused(appliance, person)
            assert anchors("--pin", sha256.upper())[0] == 0
            assert anchors("--check") == (0, "")
            assert "yes" in anchors()[1]
            with appliance.client(person) as client:
                request = appliance.new_request(person, pdfs.one_page())
                signed_pdf(client, person, request)
            assert anchors("--unpin", sha256)[0] == 0
            refused(appliance, person)
            assert anchors("--unpin", sha256)[0] == 1
            assert anchors("--pin", sha256, "--file", str(file))[0] == 0
            with appliance.client(person) as client:
                request = appliance.new_request(person, pdfs.one_page())
                signed_pdf(client, person, request)
        finally:
            format_file(appliance).unlink()


def test_root_of_a_writer_of_the_database_makes_nobody_somebody_else(
    appliance_with_keys: Appliance,
) -> None:
    """Where the upgrade is closed: root, chain and name are all theirs, and in vain."""
    appliance = appliance_with_keys
    thief = appliance.new_person("Ladrona")
    key = appliance.credential(thief)
    forger = OutsideCa(datetime.now(UTC).replace(microsecond=0), "AC de la ladrona")
    values = certified(key, thief, forger, "Víctima")
    trust(appliance, forger)
    format_file(appliance).write_text("2\n")
    try:
        with altered(appliance, tables.credential, key.id, **values):
            refused(appliance, thief)
    finally:
        format_file(appliance).unlink()
