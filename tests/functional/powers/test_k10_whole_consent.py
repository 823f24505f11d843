"""K10: whoever writes to the database changes what is signed after it was consented to.

The worker is held still after the password was right; one thing that the signature or
its stamp follows from is swapped in the rows; then the worker goes on. Nothing is
signed: the seal is bound to all of it, and the request goes back to its signer.

Source: docs/signing.md "What the consent covers".
"""

import copy
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from PIL import Image
from sqlalchemy import Executable, Row, Table, update

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.credential_store import join, split
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign, sign_at_last, state_of
from tests.support.appliance.ledger import read_ledger
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import read_rows, write
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

_REQUEST: Final = tables.signature_request
_FIELD: Final = "contrato.comprador"


@dataclass(frozen=True, slots=True)
class Scene:
    """A consent that a worker has not claimed yet, as the database has it."""

    appliance: Appliance
    person: TestPerson
    request: int

    def row(self, table: Table, **values: object) -> Row[Any]:
        """The one row with those values."""
        return next(
            row
            for row in read_rows(self.appliance, table)
            if all(getattr(row, name) == value for name, value in values.items())
        )

    @property
    def wanted(self) -> Row[Any]:
        """The request."""
        return self.row(_REQUEST, id=self.request)

    def swap(self, table: Table, key: str, of: object, **values: object) -> "Swap":
        """Other values in one row, and those that it had."""
        row = self.row(table, **{key: of})
        before = {name: getattr(row, name) for name in values}
        which = update(table).where(table.c[key] == of)
        return Swap(which.values(**values), which.values(**before))


@dataclass(frozen=True, slots=True)
class Swap:
    """What somebody writes, and what puts it right again."""

    does: Executable
    undoes: Executable


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def appliance(
    request: pytest.FixtureRequest, postgres_server: PostgresServer
) -> Iterator[Appliance]:
    """An appliance with one signing worker, whose stamps show a logo and a code."""
    options = {
        "signing": "workers = 1\nwait_s = 0.1",
        "more": '[profile]\nlevel = "B-B"\n[stamp]\nqr = true',
    }
    with short_folder() as folder:
        if request.param == "sqlite":
            with Appliance.made(folder, **options) as made:
                _show_logo(made)
                yield made
            return
        name = postgres_server.create_database()
        url = postgres_server.url(name)
        with Appliance.made(folder, database=url, **options) as made:
            _show_logo(made)
            yield made
        postgres_server.drop_database(name)


def _show_logo(appliance: Appliance) -> None:
    """Have stamps show a red logo."""
    out = io.BytesIO()
    Image.new("RGB", (8, 4), "red").save(out, "PNG")

    async def show(front: ServiceRegistry) -> None:
        await front.logos.show(out.getvalue(), "operator")

    appliance.do(show)


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs."""
    return appliance.new_person()


# -- what is swapped -------------------------------------------------------------------


def _pixels(scene: Scene) -> Swap:
    """The logo's pixels, under the hash that the stamp names."""
    logo = read_rows(scene.appliance, tables.logo)[0]
    other = zlib.compress(b"\0\0\xff" * (logo.width * logo.height), 9)
    return scene.swap(tables.logo, "sha256", logo.sha256, deflated=other)


def _person(**values: object) -> Callable[[Scene], Swap]:
    """What the stamp and the signature dictionary say of the signer."""
    return lambda scene: scene.swap(tables.person, "id", scene.person.id, **values)


def _code(scene: Scene) -> Swap:
    """The code that leads to the page of the signature."""
    item = tables.activation_item
    return scene.swap(item, "request", scene.request, code="0" * 26)


def _certificate(scene: Scene) -> Swap:
    """A certificate over the same key and of the same name, by a CA of the thief's."""
    held = scene.row(tables.credential, person=scene.person.id)
    own = x509.load_der_x509_certificate(held.certificate)
    authority = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(own.subject)
        .issuer_name(own.issuer)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(own.not_valid_before_utc)
        .not_valid_after(own.not_valid_after_utc)
    )
    for extension in own.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    forged = builder.sign(authority, SHA256()).public_bytes(Encoding.DER)
    return scene.swap(tables.credential, "id", held.id, certificate=forged)


def _chain(scene: Scene) -> Swap:
    """A shorter chain beside the signature."""
    held = scene.row(tables.credential, person=scene.person.id)
    chain = join(split(held.chain)[:-1])
    return scene.swap(tables.credential, "id", held.id, chain=chain)


def _inspected(change: Callable[[dict[str, Any]], object]) -> Callable[[Scene], Swap]:
    """What the sandbox said of the document, by which the stamp is laid out."""

    def swap(scene: Scene) -> Swap:
        document = scene.row(tables.document, id=scene.wanted.document)
        inspection = copy.deepcopy(document.inspection)
        change(inspection)
        return scene.swap(tables.document, "id", document.id, inspection=inspection)

    return swap


def _turn_pages(inspection: dict[str, Any]) -> None:
    for run in inspection["page_runs"]:
        run[5] = 180


def _add_mark(inspection: dict[str, Any]) -> None:
    inspection["marks"].append([1, 0.0, 0.0, 595.0, 420.0])


def _move_field(inspection: dict[str, Any]) -> None:
    (field,) = inspection["signing"]["empty"]
    field["rect"] = [10.0, 10.0, 580.0, 830.0]


def _raise_number(inspection: dict[str, Any]) -> None:
    inspection["last_number"] += 100


def _wished(**values: object) -> Callable[[Scene], Swap]:
    """How the request is to be signed."""
    return lambda scene: scene.swap(_REQUEST, "id", scene.request, **values)


def _integrators(**values: object) -> Callable[[Scene], Swap]:
    """How the integrator's requests are to be signed."""
    return lambda scene: scene.swap(
        tables.integrator, "id", scene.wanted.integrator, **values
    )


SWAPS: Final[dict[str, Callable[[Scene], Swap]]] = {
    "pixels of the logo": _pixels,
    "name": _person(name="Otra Persona"),
    "tax number": _person(cuil="20267565393"),
    "language": _person(locale="en"),
    "verification code": _code,
    "certificate": _certificate,
    "chain": _chain,
    "rotation of the pages": _inspected(_turn_pages),
    "marks of other signatures": _inspected(_add_mark),
    "place of the field": _inspected(_move_field),
    "number of the last object": _inspected(_raise_number),
    "level": _wished(wished_level="B-T"),
    "timestamp policy": _wished(timestamp_policy="required"),
    "digest": _wished(digest="sha512"),
    "timestamping authority": _wished(tsa=["another"]),
    "integrator's level": _integrators(level="B-T"),
    "integrator's digest": _integrators(digest="sha512"),
    "integrator's timestamping authority": _integrators(tsa=["another"]),
}

_SEAL: Final = "ACTIVATION_INVALID", "seal"
LOCKS: Final = {
    what: ("CERTIFICATE_NOT_USABLE", layer)
    for what, layer in {
        "name": "certificate-name",
        "tax number": "certificate-cuil",
        "certificate": "certificate-issuer",
    }.items()
}
"""The lock that is tried first, where it is not the seal: both hold."""


@pytest.mark.parametrize("what", SWAPS)
def test_what_was_swapped_after_the_consent_signs_nothing(
    appliance: Appliance, victim: TestPerson, what: str
) -> None:
    """Given back, audited with the lock that held; put right, it is signed."""
    fields: dict[str, object] = {}
    if what == "place of the field":
        fields["campo"] = _FIELD
    request = appliance.new_request(victim, with_fields(Field(_FIELD)))
    scene = Scene(appliance, victim, request)
    with appliance.client(victim) as client:
        with held(appliance):
            assert sign(client, victim, request, **fields).status_code == 202
            swap = SWAPS[what](scene)
            write(appliance, swap.does)
        until(lambda: scene.wanted.state != RequestState.IN_PROGRESS.value)
        outcome = scene.wanted.state
        write(appliance, swap.undoes)

        assert outcome == RequestState.PENDING.value, "the swapped thing was signed"
        (back,) = _audited(scene, EventKind.REQUEST_RETURNED)
        assert (back["reason"], back["layer"]) == LOCKS.get(what, _SEAL)
        assert _audited(scene, EventKind.KEY_INTENDED) == []
        again = sign_at_last(client, victim, request, **fields)
        assert again.status_code == 200, again.text
        assert state_of(client, request) == "firmada"
    assert read_ledger(appliance, after=request - 1).faults() == []


def _audited(scene: Scene, kind: EventKind) -> list[dict[str, Any]]:
    """What was recorded of a kind about the request."""
    rows = read_rows(scene.appliance, tables.audit_event)
    return [
        row.detail
        for row in rows
        if row.event == kind.value and row.request == scene.request
    ]


def test_pixels_are_known_by_their_hash(appliance: Appliance) -> None:
    """The control: what is drawn is what the logo is filed under."""
    (logo,) = read_rows(appliance, tables.logo)

    assert hashlib.sha256(zlib.decompress(logo.deflated)).hexdigest() == logo.sha256
