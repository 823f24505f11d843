"""Power: a signature that no key of the installation made is handed to a worker.

An activation whose key phase is over needs no seal. Whoever writes its rows has a
worker complete and publish what they made themselves, with a certificate of their own
in the victim's credential. The worker checks whose key it is there as well, and on
PostgreSQL fronts write no signature.

Source: docs/keys.md "Whose key it is".
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import insert, text, update
from sqlalchemy.exc import DBAPIError

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.database.rights import OWNER, Role
from appliance.domain.ids import RequestId, new_id
from appliance.domain.signing.activation import ActivationDocument
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import ItemState, RequestState, Restriction
from appliance.keys.credential_store import join
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.documents import pdfs
from tests.support.documents.software_signer import make_signer
from tests.support.faults.altered_rows import altered
from tests.support.faults.fault_injection import until
from tests.support.faults.theft import read_rows, write
from tests.support.installation.settings import settings_in
from tests.support.processes.scratch import short_folder
from worker.pades import SignaturePlan, method_for, prepare

_REQUEST: Final = tables.signature_request


@pytest.fixture(scope="module")
def appliance() -> Iterator[Appliance]:
    """On SQLite, with one signing worker."""
    more = '[profile]\nlevel = "B-B"'
    with (
        short_folder() as folder,
        Appliance.made(folder, signing="workers = 1", more=more) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs nothing here."""
    return appliance.new_person()


def forged(appliance: Appliance, victim: TestPerson, request: int) -> dict[str, Any]:
    """Rows of a signature by another key; the certificate that it has."""
    wanted = next(row for row in read_rows(appliance, _REQUEST) if row.id == request)
    found = read_rows(appliance, tables.document)
    sha256 = next(row.sha256 for row in found if row.id == wanted.document)
    signer, pdf = make_signer(name=victim.name), pdfs.one_page()
    plan = SignaturePlan(
        field_name=f"Firma-{request}",
        layout=None,
        restriction=Restriction.NO_VALUE,
        signed_at=datetime.now(UTC),
        signer_name=victim.name,
        certificate=signer.certificate,
        chain=signer.chain,
        method=method_for(signer.certificate),
    )
    prepared = prepare(pdf, plan, None)
    params = SignParameters(visible=False)
    document = ActivationDocument(
        0, RequestId(request), sha256, params, params.sha256(request)
    )
    return {
        "certificate": signer.certificate,
        "chain": join(signer.chain),
        "item": {
            "seq": document.seq,
            "request": request,
            "document_sha256": sha256,
            "params": params.to_wire(),
            "params_sha256": document.params_sha256,
            "state": ItemState.KEYED.value,
            "reason": "",
            "increment": prepared.increment,
            "contents_at": prepared.contents_at,
            "contents_length": prepared.contents_length,
            "signed_attributes": prepared.signed_attributes,
            "signature": signer.value(prepared.digest),
        },
    }


def test_worker_completes_no_signature_of_another_certificate(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The victim never typed a password; the request is not signed."""
    request = appliance.new_request(victim, pdfs.one_page())
    made, credential = forged(appliance, victim, request), appliance.credential(victim)
    one, now = new_id(), datetime.now(UTC)
    later = now + timedelta(hours=1)
    swapped = {name: made[name] for name in ("certificate", "chain")}

    with altered(appliance, tables.credential, credential.id, **swapped):
        write(
            appliance,
            insert(tables.activation).values(
                id=one,
                person=victim.id,
                credential=credential.id,
                state="finishing",
                factors=["sign-pwd"],
                created=now,
                claim_by=now,
                key_until=now,
                finish_until=later,
                lease_until=now - timedelta(hours=1),
                fence=1,
                progress=1,
                reason="",
            ),
            insert(tables.activation_item).values(activation=one, **made["item"]),
            update(_REQUEST)
            .where(_REQUEST.c.id == request)
            .values(
                state=RequestState.IN_PROGRESS.value,
                activation=one,
                params_sha256=made["item"]["params_sha256"],
            ),
        )
        until(lambda: _state(appliance, request) != RequestState.IN_PROGRESS.value)

    assert _state(appliance, request) != RequestState.SIGNED.value
    signed = [row.request for row in read_rows(appliance, tables.signed_document)]
    assert request not in signed


def _state(appliance: Appliance, request: int) -> str:
    rows = read_rows(appliance, _REQUEST)
    return str(next(row.state for row in rows if row.id == request))


_WRITES: Final = {
    """
    INSERT INTO activation_item (activation, seq, request, document_sha256, params,
        params_sha256, state, reason, {0})
    SELECT 'x', 0, 1, '', '{{}}', '', 'keyed', '', NULL WHERE false""": (
        "increment",
        "contents_at",
        "contents_length",
        "signed_attributes",
        "signature",
    ),
    """
    INSERT INTO activation (id, person, credential, state, factors, created, claim_by,
        fence, progress, reason, {0})
    SELECT 'x', 'y', 'z', 'finishing', '[]', now(), now(), 0, 0, '', NULL
    WHERE false""": (
        "key_until",
        "finish_until",
        "lease_owner",
        "lease_until",
        "outside",
    ),
}
"""Statements by which a front would write what follows a consent, and its columns."""


@pytest.mark.storage
@pytest.mark.parametrize("role", [Role.API, Role.EMBED])
async def test_fronts_write_no_signature(role: Role, tmp_path: Path) -> None:
    """On PostgreSQL: they record that a document waits, and no more of it."""
    with SeparateUsers.made() as made:
        await migrate(settings_in(tmp_path / "owner", made.url(OWNER)))
        engines = open_engines(settings_in(tmp_path / "role", made.url(role.value)))
        try:
            for statement, columns in _WRITES.items():
                for column in columns:
                    async with engines.writer.connect() as connection:
                        with pytest.raises(DBAPIError, match="permission denied"):
                            await connection.execute(text(statement.format(column)))
        finally:
            await engines.dispose()
