"""Whoever can write to the database, and has a signing password of their own.

No row that they alter gives them another's key, another's name, or a key of the
installation: the CA's certificate states whose a key is. Both places of keys are tried.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import select

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.keys.hsm_keys import KeyMode
from appliance.domain.people.identity import Credential
from appliance.domain.vocab import StatementFault
from appliance.keys.credential_store import join
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign
from tests.support.documents import pdfs
from tests.support.faults.altered_rows import altered
from tests.support.faults.fault_injection import harmed, restarted
from tests.support.hsm.hsm_installation import OWN_KEYS
from tests.support.pki.outside_ca import Form, der, ec_key, make, named, spki_of, usage

F = StatementFault
OWN_IDS = {
    "keep-alive": b"rubrica-keep-alive",
    "identity": b"rubrica-worker-identity",
    "master": b"rubrica-mwk-1",
    "generation": b"rubrica-generation-1.0a1b",
    "check": b"rubrica-check-00000000",
    **{ref.cka_id.decode(): ref.cka_id for ref in OWN_KEYS},
}


@dataclass(frozen=True)
class Place:
    """An appliance, and people who keep their keys in one of both places."""

    appliance: Appliance
    thief: TestPerson
    victim: TestPerson
    ours: Credential
    theirs: Credential

    @classmethod
    def of(cls, appliance: Appliance, name: str) -> "Place":
        """Two people who enrol now."""
        thief = appliance.new_person(f"Ladrona {name}")
        victim = appliance.new_person(f"Víctima {name}")
        ours, theirs = appliance.credential(thief), appliance.credential(victim)
        return cls(appliance, thief, victim, ours, theirs)

    @property
    def ca(self) -> x509.Certificate:
        """Certificate of the installation's CA."""
        pem = (self.appliance.folder / "pki" / "ca.pem").read_bytes()
        return x509.load_pem_x509_certificate(pem)

    def altered(self, **values: Any) -> contextlib.AbstractContextManager[None]:
        """Have the thief's credential say something else."""
        return altered(self.appliance, tables.credential, self.ours.id, **values)

    def renamed(self, **values: Any) -> contextlib.AbstractContextManager[None]:
        """Have the thief's own row say something else."""
        return altered(self.appliance, tables.person, self.thief.id, **values)

    def asked(self) -> int:
        """A document for the thief to sign."""
        return self.appliance.new_request(self.thief, pdfs.one_page())

    def refused(self, fault: StatementFault, request: int | None = None) -> None:
        """The thief signs in vain; what is told and recorded says why."""
        request = self.asked() if request is None else request
        with self.appliance.client(self.thief) as client:
            answer = sign(client, self.thief, request)
        problem(answer, 409, "CERTIFICATE_NOT_USABLE")
        told = _audited(self.appliance, request)
        back = told["request.returned"]
        assert (back["reason"], back["layer"]) == ("CERTIFICATE_NOT_USABLE", fault)
        assert "key.used" not in told
        assert fault.value in self.appliance.log.read_text()

    def unopened(self) -> None:
        """The thief's password opens no key of these rows: the front says so."""
        request = self.asked()
        with self.appliance.client(self.thief) as client:
            problem(sign(client, self.thief, request), 403, "SIGN_PASSWORD_WRONG")
        assert "activation.created" not in _audited(self.appliance, request)

    def signs(self) -> None:
        """With the rows as they were, the thief's own key signs."""
        with self.appliance.client(self.thief) as client:
            answer = sign(client, self.thief, self.asked())
        assert answer.status_code == 200, answer.text


def _audited(appliance: Appliance, request: int) -> dict[str, dict[str, Any]]:
    """The last event of each kind about a request."""

    async def read(front: ServiceRegistry) -> dict[str, dict[str, Any]]:
        async with front.core.store.read() as transaction:
            rows = await transaction.audit.of_request(request)
        return {row.event.event.value: dict(row.event.detail) for row in rows}

    return appliance.do(read)


@pytest.fixture(scope="module")
def places() -> Iterator[dict[KeyMode, Place]]:
    """Two people with wrapped keys, and two with resident ones."""
    with harmed(signing="workers = 1") as appliance:
        wrapped = Place.of(appliance, "Envuelta")
        with restarted(appliance, hsm='key_mode = "resident"'):
            resident = Place.of(appliance, "Residente")
            yield {KeyMode.WRAPPED: wrapped, KeyMode.RESIDENT: resident}


@pytest.fixture(params=KeyMode)
def place(request: pytest.FixtureRequest, places: dict[KeyMode, Place]) -> Place:
    """People with one kind of key."""
    found = places[request.param]
    assert found.ours.key_mode is request.param
    return found


# -- another key ---------------------------------------------------------------------


def test_resident_key_of_another_signs_nothing(
    place: Place, places: dict[KeyMode, Place]
) -> None:
    """By its CKA_ID in a row of the thief's, whose own password is right."""
    theirs = places[KeyMode.RESIDENT].theirs
    with place.altered(key_mode="resident", cka_id=theirs.cka_id):
        place.refused(F.RESIDENT)
    place.signs()


def test_key_of_another_with_their_certificate_signs_nothing(
    place: Place, places: dict[KeyMode, Place]
) -> None:
    """The certificate is right, and of another key than the password's layer is."""
    theirs = places[KeyMode.RESIDENT].theirs
    certified = {"certificate": theirs.certificate, "chain": join(theirs.chain)}
    moved = {"key_mode": "resident", "cka_id": theirs.cka_id}
    with place.altered(**certified):
        place.refused(F.KEY)
    with place.altered(**certified, **moved):
        place.refused(F.KEY)
    # With their key in the row, the password opens nothing.
    with place.altered(**certified, **moved, spki=theirs.spki):
        place.unopened()
    place.signs()


def test_all_rows_of_another_open_no_lock(
    place: Place, places: dict[KeyMode, Place]
) -> None:
    """With name and number of the victim, too, all agrees: but for the password."""
    theirs, person = places[KeyMode.RESIDENT].theirs, places[KeyMode.RESIDENT].victim
    moved = {
        "key_mode": "resident",
        "cka_id": theirs.cka_id,
        "certificate": theirs.certificate,
        "chain": join(theirs.chain),
        "spki": theirs.spki,
    }
    request = place.asked()
    name = "Víctima Residente"
    number = place.appliance.next_cuil()
    with (
        place.appliance.client(place.thief) as client,
        altered(place.appliance, tables.person, person.id, cuil=number),
        place.renamed(name=name, cuil=person.cuil),
        place.altered(**moved),
    ):
        problem(sign(client, place.thief, request), 403, "SIGN_PASSWORD_WRONG")
    assert "activation.created" not in _audited(place.appliance, request)
    place.signs()


@pytest.mark.parametrize("name", OWN_IDS)
@pytest.mark.parametrize("token", ["firma", "pki"])
def test_key_of_the_installation_signs_nothing(
    places: dict[KeyMode, Place], name: str, token: str
) -> None:
    """Neither by its CKA_ID nor by the other token's name."""
    place = places[KeyMode.RESIDENT]
    with place.altered(key_mode="resident", key_token=token, cka_id=OWN_IDS[name]):
        place.refused(F.RESIDENT)


@pytest.mark.parametrize("whose", ["root", "ca", "ocsp", "tsa"])
def test_certificate_of_the_installation_signs_nothing(
    place: Place, whose: str
) -> None:
    """With its key's place, and with its public key in the row, too."""
    certificate = _own_certificate(place, whose)
    spki = _spki(certificate)
    values = {
        "certificate": der(certificate),
        "chain": join(() if whose == "root" else (der(place.ca),)),
        "key_mode": "resident",
        "key_token": "pki",
        "cka_id": f"rubrica-{whose}-1".encode(),
    }
    with place.altered(**values):
        place.refused(F.KEY)
    with place.altered(**values, spki=spki):
        place.unopened()
    place.signs()


def _own_certificate(place: Place, whose: str) -> x509.Certificate:
    """The installation's own certificate, from its file or the record."""
    if whose in {"root", "ca"}:
        pem = (place.appliance.folder / "pki" / f"{whose}.pem").read_bytes()
        return x509.load_pem_x509_certificate(pem)
    # A first document that needs both has them made.
    place.signs()

    async def read(front: ServiceRegistry) -> bytes:
        kind = tables.certificate.c.kind == whose
        async with front.core.store.read() as transaction:
            query = select(tables.certificate.c.der).where(kind)
            found = await transaction.connection.execute(query)
            return bytes(found.scalars().first() or b"")

    return x509.load_der_x509_certificate(place.appliance.do(read))


def _spki(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )


# -- another name, another certificate -----------------------------------------------


def test_name_of_another_signs_nothing(place: Place) -> None:
    """The stamp would show it; the certificate does not have it."""
    with place.renamed(name="Presidenta de la Nación"):
        place.refused(F.NAME)
    place.signs()


def test_number_of_another_signs_nothing(place: Place) -> None:
    """The stamp would show it; the certificate does not have it."""
    request = place.asked()
    with place.renamed(cuil=place.appliance.next_cuil()):
        place.refused(F.CUIL, request)


def test_certificate_of_a_ca_of_the_same_name_signs_nothing(place: Place) -> None:
    """Made at home for the thief's own key, with the victim's name and number."""
    forger = ec_key()
    start, end = place.ours.not_before, place.ours.not_after
    ca_form = Form(
        place.ca.subject,
        start,
        end,
        ca=True,
        usage=usage("key_cert_sign"),
        purposes=None,
    )
    ca = make(ca_form, spki_of(forger), place.ca.subject, forger)
    subject = named("Víctima", f"CUIL {place.thief.cuil}")
    forged = make(Form(subject, start, end), place.ours.spki, ca.subject, forger)
    for chain in ((ca,), (place.ca,), ()):
        values = {"certificate": der(forged), "chain": join(tuple(map(der, chain)))}
        with place.altered(**values), place.renamed(name="Víctima"):
            place.refused(F.ISSUER)


def test_certificate_that_signed_itself_signs_nothing(place: Place) -> None:
    """Of the thief's own key as of any other."""
    forger = ec_key()
    subject = named("Víctima", f"CUIL {place.thief.cuil}")
    form = Form(subject, place.ours.not_before, place.ours.not_after)
    forged = make(form, spki_of(forger), subject, forger)
    with place.altered(certificate=der(forged), chain=b""):
        place.refused(F.KEY)
    with place.altered(certificate=der(forged), chain=b"", spki=spki_of(forger)):
        place.unopened()
    place.signs()


def test_bytes_that_are_no_certificate_sign_nothing(place: Place) -> None:
    """What a certificate is read of comes from a row, too."""
    with place.altered(certificate=place.ours.certificate[:-1]):
        place.refused(F.UNREADABLE)
    with place.altered(chain=join((b"\x30\x00",))):
        place.refused(F.UNREADABLE)


def test_request_for_an_outside_certificate_names_whom_the_certificate_names(
    place: Place,
) -> None:
    """A renamed person's key asks no CA to certify that name."""
    body = {"password": place.thief.signing_password}
    with place.renamed(name="Víctima"), place.appliance.client(place.thief) as client:
        answer = client.post(f"/credenciales/{place.ours.id}/csr", json=body)
    assert answer.status_code >= 400
    assert b"CERTIFICATE REQUEST" not in answer.content
