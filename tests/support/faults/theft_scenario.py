"""The scene of a theft: ten signatures under way, stolen from, and tampered with.

    with staged(appliance) as scene:
        assert scene.returned(3)["layer"] == "seal"

The signing worker is held still while the thief copies and changes rows; then it
goes on, and what became of each activation can be asked.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx
from sqlalchemy import Executable, Row, Table, update

from appliance.database import tables
from appliance.domain.documents.inspected import inspection_from_json
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    format_of,
)
from appliance.domain.signing.consent import Consent, ConsentSigner, DocumentTerms
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.credential_store import credential_of
from appliance.keys.key_encryption import seal_to
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import at_once, log_in_whole, sign
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import Loot, read_rows, steal, write
from tests.support.processes.scratch import short_folder

PEOPLE: Final = 10
_A: Final = tables.activation
_ITEM: Final = tables.activation_item
_SEAL: Final = tables.activation_seal
_KEY: Final = tables.activation_key
_CREDENTIAL: Final = tables.credential
_REQUEST: Final = tables.signature_request


@dataclass(frozen=True, slots=True)
class Scene:
    """An appliance that was stolen from, and what became of what was under way."""

    appliance: Appliance
    people: list[TestPerson]
    requests: list[int]
    """One a person, under way when the theft happened."""
    loot: Loot
    secrets: set[str]
    """What people typed, and codes and tokens."""

    def activation(self, number: int) -> Row[Any]:
        """The stolen activation of a person."""
        item = self.item(number)
        return next(r for r in self.loot.of(_A) if r.id == item.activation)

    def item(self, number: int) -> Row[Any]:
        """Its one document."""
        request = self.requests[number]
        return next(r for r in self.loot.of(_ITEM) if r.request == request)

    def seal(self, number: int) -> Row[Any]:
        """The unlock key, sealed to the one host."""
        item = self.item(number)
        return next(r for r in self.loot.of(_SEAL) if r.activation == item.activation)

    def credential(self, number: int) -> Row[Any]:
        """A person's stolen credential."""
        person = self.people[number].id
        return next(r for r in self.loot.of(_CREDENTIAL) if r.person == person)

    def info(self, number: int) -> bytes:
        """What the seal is bound to, computed by the thief."""
        row, item = self.activation(number), self.item(number)
        params = SignParameters.from_wire(item.params)
        credential = credential_of(self.credential(number))
        person = self._row(tables.person, row.person)
        request = self._row(_REQUEST, item.request)
        document = self._row(tables.document, request.document)
        signer = ConsentSigner(
            person.name,
            person.cuil,
            person.locale,
            credential.key_version,
            credential.certificate,
            credential.chain,
        )
        basis = inspection_from_json(document.inspection).basis_sha256
        terms = DocumentTerms(basis, self.appliance.settings.signature_profile)
        activation = Activation(
            id=row.id,
            person=row.person,
            credential=row.credential,
            documents=(
                ActivationDocument(
                    0,
                    item.request,
                    item.document_sha256,
                    params,
                    item.params_sha256,
                    code=item.code,
                ),
            ),
            factors=tuple(row.factors),
            created=row.created,
            claim_by=row.claim_by,
        )
        consent = Consent(activation, signer, (terms,))
        return consent.data(format_of(self.seal(number).epoch))

    def _row(self, table: Table, number: object) -> Row[Any]:
        """A stolen row by its id."""
        return next(row for row in self.loot.of(table) if row.id == number)

    def returned(self, number: int) -> dict[str, object]:
        """What the audit says of why a request went back to its signer."""
        rows = [
            row
            for row in read_rows(self.appliance, tables.audit_event)
            if row.event == EventKind.REQUEST_RETURNED.value
            and row.request == self.requests[number]
        ]
        assert rows, f"request {self.requests[number]} was not given back"
        detail: dict[str, object] = max(rows, key=lambda row: row.at).detail
        return detail

    def state(self, number: int) -> str:
        """How a request stands now."""
        rows = read_rows(self.appliance, _REQUEST)
        return str(next(r for r in rows if r.id == self.requests[number]).state)


@contextmanager
def staged(appliance: Appliance) -> Iterator[Scene]:
    """Ten people sign; the theft; the thief's changes; then the worker goes on.

    Args:
        appliance: with one signing worker, and calls that do not wait.
    """
    people = [appliance.new_person(f"Persona {number}") for number in range(PEOPLE)]
    requests = [appliance.new_request(person, pdfs.one_page()) for person in people]
    other = appliance.new_request(people[2], pdfs.one_page(text="otro"), "otro.pdf")
    typed = _sign_in(appliance, people[0])
    clients = [appliance.client(person) for person in people]
    calls = [_call(*one) for one in zip(clients, people, requests, strict=True)]
    with short_folder() as folder:
        with held(appliance):
            answers = at_once(calls)
            assert [answer.status_code for answer in answers] == [202] * PEOPLE
            loot = steal(appliance, folder)
            known = typed | appliance.secrets
            scene = Scene(appliance, people, requests, loot, known)
            write(appliance, *_alterations(scene, other))
        until(lambda: not _under_way(scene))
        write(appliance, *_mendings(scene))
        yield scene
    for client in clients:
        client.close()


def _call(
    client: httpx.Client, person: TestPerson, request: int
) -> Callable[[], httpx.Response]:
    return lambda: sign(client, person, request)


def _sign_in(appliance: Appliance, person: TestPerson) -> set[str]:
    """Sign in as people do; gives what went over the wire."""
    with appliance.client() as client:
        return set(log_in_whole(appliance, client, person))


def _under_way(scene: Scene) -> bool:
    rows = read_rows(scene.appliance, _REQUEST)
    return any(row.state == RequestState.IN_PROGRESS.value for row in rows)


# -- what the thief does to activations that are under way ---------------------


def _alterations(scene: Scene, other: int) -> list[Executable]:
    """Each changes one activation; the first two are left as they are."""
    rows = {row.id: row for row in scene.loot.of(_REQUEST)}
    document = next(
        row for row in scene.loot.of(tables.document) if row.id == rows[other].document
    )
    params = SignParameters.from_wire(
        {**scene.item(3).params, "restriccion": "NO_CHANGES_ALLOWED"}
    )
    forged = seal_to(_host_key(scene), secrets.token_bytes(32), scene.info(6))
    return [
        changed_item(scene, 2, document_sha256=document.sha256),
        update(_REQUEST)
        .where(_REQUEST.c.id == scene.requests[2])
        .values(document=document.id),
        changed_item(
            scene,
            3,
            params=params.to_wire(),
            params_sha256=params.sha256(scene.item(3).request),
        ),
        changed_activation(scene, 4, factors=["pwd", "otp", "hwk", "sign-pwd"]),
        changed_activation(
            scene, 5, claim_by=scene.activation(5).claim_by + timedelta(1)
        ),
        _sealed(scene, 6, sealed=forged),
        _sealed(scene, 7, sealed=scene.seal(0).sealed),
        _kept(scene, 8, outer=scene.credential(9).outer),
        _kept(scene, 9, blob_w=scene.credential(0).blob_w),
    ]


def _mendings(scene: Scene) -> list[Executable]:
    """Give back to two people what was taken from their credentials."""
    return [
        _kept(scene, 8, outer=scene.credential(8).outer),
        _kept(scene, 9, blob_w=scene.credential(9).blob_w),
    ]


def changed_item(scene: Scene, number: int, **values: object) -> Executable:
    """Change the document of a stolen activation."""
    identity = scene.item(number).activation
    return update(_ITEM).where(_ITEM.c.activation == identity).values(**values)


def changed_activation(scene: Scene, number: int, **values: object) -> Executable:
    """Change a stolen activation itself."""
    return update(_A).where(_A.c.id == scene.activation(number).id).values(**values)


def _sealed(scene: Scene, number: int, **values: object) -> Executable:
    identity = scene.activation(number).id
    return update(_SEAL).where(_SEAL.c.activation == identity).values(**values)


def _kept(scene: Scene, number: int, **values: object) -> Executable:
    identity = scene.credential(number).id
    return update(_CREDENTIAL).where(_CREDENTIAL.c.id == identity).values(**values)


def _host_key(scene: Scene) -> bytes:
    """The one host's published key of the epoch that a seal is of."""
    epoch = scene.seal(6).epoch
    (key,) = (row for row in scene.loot.of(_KEY) if row.epoch == epoch)
    return bytes(key.public)
