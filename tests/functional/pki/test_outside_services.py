"""TSAs and CAs outside, through the whole appliance.

Source: issue "RFC 3161 client …"; reliability F22-F24; docs/levels.md.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import EventKind, SignatureLevel, TimestampPolicy
from appliance.pki.validation.external_status_store import ExternalStatusStore
from tests.functional.pki.test_outside_ca import spki_of
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign, state_of
from tests.support.documents import pdfs
from tests.support.documents.long_term_validators import lt_failures
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.patience import CALL_S
from tests.support.pki.outside_ca import bundle, der
from tests.support.services.fake_ca import Says
from tests.support.services.fake_tsa import Mode
from tests.support.services.outside_services import FIRST, SECOND, OutsideServices
from worker.failpoints import (
    DELIVERED,
    FETCHED,
    FILE_WRITTEN,
    KEYED,
    ONCE,
    PUBLISHED,
    STAMPED,
)

LONGEST_S = 120.0
LT = SignatureLevel.B_LT


@pytest.fixture(scope="module")
def trusted(sqlite_appliance: Appliance, world: OutsideServices) -> Appliance:
    """It trusts the root outside for both purposes."""
    path = sqlite_appliance.folder / "outside-root.pem"
    path.write_bytes(bundle(world.ca.root))
    fingerprint = world.ca.root.fingerprint(hashes.SHA256()).hex()
    for purpose in ("signers", "timestamps"):
        added = sqlite_appliance.rubrica(
            *("trust", "add", str(path)),
            *("--purpose", purpose, "--fingerprint", fingerprint),
        )
        assert added.returncode == 0, added.stderr
    pinned = sqlite_appliance.rubrica("hsm", "anchors", "--pin", fingerprint)
    assert pinned.returncode == 0, pinned.stderr
    return sqlite_appliance


@pytest.fixture(autouse=True)
def good(world: OutsideServices) -> Iterator[None]:
    """Whatever a test does to the world, the next one finds it good."""
    yield
    world.first.mode = world.second.mode = Mode.GOOD
    world.site.ocsp = world.site.crl = Says.GOOD
    world.site.revoked.clear()


@pytest.fixture(scope="module")
def person(trusted: Appliance) -> TestPerson:
    """Somebody whom the internal CA certified."""
    return trusted.new_person("Elena Ríos")


@pytest.fixture(scope="module")
def outsider(trusted: Appliance, world: OutsideServices) -> TestPerson:
    """Somebody whom the CA outside certified."""
    somebody = trusted.new_person("Ñusta Quispe")
    with trusted.client(somebody) as client:
        (held,) = client.get("/credenciales").json()
        here = f"/credenciales/{held['id']}"
        body = {"password": somebody.signing_password}
        request = x509.load_pem_x509_csr(client.post(f"{here}/csr", json=body).content)
        chain = bundle(
            world.ca.certify(spki_of(request), somebody.cuil), world.ca.issuing
        )
        done = client.post(f"{here}/cadena", json={"cadena": chain.decode()})
        assert done.status_code == 200, done.text
    return somebody


def wishing(
    policy: TimestampPolicy, *tsa: str, level: SignatureLevel = LT
) -> ProfileWishes:
    """A level, and who stamps."""
    return ProfileWishes(level, policy, tsa=tsa)


def signed(
    appliance: Appliance, person: TestPerson, request: int, *, then: str = "firmada"
) -> dict[str, Any]:
    """Sign, and wait as long as it takes; gives what firmar says at last."""
    with appliance.client(person) as client:
        answer = sign(client, person, request)
        until(lambda: state_of(client, request) == then)
        answer = sign(client, person, request)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    end = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.2)


def fetched(told: dict[str, Any]) -> bytes:
    """The signed document."""
    return httpx.get(told["documentoFirmado"], timeout=CALL_S).content


def test_next_tsa_is_asked_where_the_first_is_dead(
    trusted: Appliance, world: OutsideServices, person: TestPerson
) -> None:
    """B-LT at once by the second one, its data and its CA's embedded."""
    world.first.mode = Mode.OFF
    wishes = wishing(TimestampPolicy.REQUIRED, FIRST, SECOND)
    request = trusted.new_request(person, pdfs.one_page(), wishes=wishes)
    told = signed(trusted, person, request)
    assert told["nivel"] == "B-LT"
    pdf = fetched(told)
    assert pyhanko_valid(pdf, [der(world.ca.root), *trusted.roots])
    assert [each.valid for each in pdfsig(pdf)] == [True]
    assert (world.first.asked > 0, world.second.asked > 0) == (True, True)
    assert len(trusted.intents(request)) == 1
    assert "not-for-logs" not in trusted.log.read_text()


def test_outside_certificate_is_proven_by_its_own_ca(
    trusted: Appliance, world: OutsideServices, outsider: TestPerson
) -> None:
    """OCSP of the signer and of the TSA, the CRL of the CA: all in the file."""
    wishes = wishing(TimestampPolicy.REQUIRED, SECOND)
    request = trusted.new_request(outsider, pdfs.one_page(), wishes=wishes)
    told = signed(trusted, outsider, request)
    assert told["nivel"] == "B-LT"
    pdf = fetched(told)
    assert lt_failures(pdf, der(world.ca.root), datetime.now(UTC)) == []
    assert [each.valid for each in pdfsig(pdf)] == [True]


def test_outside_certificate_is_stamped_by_the_own_tsa(
    trusted: Appliance, world: OutsideServices, outsider: TestPerson
) -> None:
    """By the worker that publishes it, once the CA outside has told its part."""
    wishes = wishing(TimestampPolicy.REQUIRED, "internal", level=SignatureLevel.B_LTA)
    request = trusted.new_request(outsider, pdfs.one_page(), wishes=wishes)
    told = signed(trusted, outsider, request)
    assert told["nivel"] == "B-LTA"
    assert pyhanko_valid(fetched(told), [der(world.ca.root), *trusted.roots])


def test_required_waits_for_the_tsa_and_signs_once(
    trusted: Appliance, world: OutsideServices, person: TestPerson
) -> None:
    """`en_proceso` while it is away, then published; the key was used once."""
    world.first.mode = world.second.mode = Mode.HTTP_ERROR
    wishes = wishing(TimestampPolicy.REQUIRED, FIRST, SECOND)
    request = trusted.new_request(person, pdfs.one_page(), wishes=wishes)
    asked = world.second.asked
    with trusted.client(person) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(sign, client, person, request)
        until(lambda: world.second.asked >= asked + 3)
        assert state_of(client, request) == "en_proceso"
        world.first.mode = world.second.mode = Mode.GOOD
        assert call.result().status_code in {200, 202}
    told = signed(trusted, person, request)
    assert told["nivel"] == "B-LT"
    assert len(trusted.intents(request)) == 1


def test_preferred_is_published_below_and_raised_later(
    trusted: Appliance, world: OutsideServices, person: TestPerson
) -> None:
    """B-B at once and said so; B-LT by itself when it is back."""
    world.first.mode = Mode.OFF
    wishes = wishing(TimestampPolicy.PREFERRED, FIRST)
    request = trusted.new_request(person, pdfs.one_page(), wishes=wishes)
    told = signed(trusted, person, request)
    assert told["nivel"] == "B-B"
    before = fetched(told)

    world.first.mode = Mode.GOOD
    with trusted.client(person) as client:
        until(lambda: sign(client, person, request).json()["nivel"] == "B-LT")
        after = fetched(sign(client, person, request).json())
    assert after.startswith(before)
    assert pyhanko_valid(after, [der(world.ca.root), *trusted.roots])


def test_archived_by_a_tsa_outside(
    trusted: Appliance, world: OutsideServices, outsider: TestPerson
) -> None:
    """A timestamp over validation data that was fetched before; all by one key use."""
    wishes = wishing(TimestampPolicy.REQUIRED, SECOND, level=SignatureLevel.B_LTA)
    request = trusted.new_request(outsider, pdfs.one_page(), wishes=wishes)
    told = signed(trusted, outsider, request)
    assert told["nivel"] == "B-LTA"
    pdf = fetched(told)
    assert pyhanko_valid(pdf, [der(world.ca.root), *trusted.roots])
    assert pdf.count(b"/DocTimeStamp") == 1
    assert len(trusted.intents(request)) == 1
    assert _publishers(trusted, request) == {"signing"}


def test_batch_is_stamped_outside(
    trusted: Appliance, world: OutsideServices, person: TestPerson
) -> None:
    """Each document by a token of its own, and published by a signing worker."""
    wishes = wishing(TimestampPolicy.REQUIRED, SECOND, level=SignatureLevel.B_LT)
    requests = [
        trusted.new_request(person, pdfs.one_page(), wishes=wishes) for _ in range(9)
    ]
    asked = world.second.asked
    with trusted.client(person) as client:
        body = {"solicitudIds": requests, "password": person.signing_password}
        answer = client.post("/solicitudes/firmar/lote", json=body)
        assert answer.status_code in {200, 202}, answer.text
        until(lambda: {state_of(client, each) for each in requests} == {"firmada"})
        for each in requests:
            told = sign(client, person, each).json()
            assert told["nivel"] == "B-LT"
            assert [one.valid for one in pdfsig(fetched(told))] == [True]
    assert world.second.asked == asked + len(requests)
    assert all(_publishers(trusted, each) == {"signing"} for each in requests)


@pytest.mark.parametrize("point", [FETCHED, DELIVERED])
def test_kill_of_who_fetches_loses_nothing(
    trusted: Appliance, person: TestPerson, point: str
) -> None:
    """The job is taken again when its lease ends; the key is used once."""
    wishes = wishing(TimestampPolicy.REQUIRED, SECOND, level=SignatureLevel.B_T)
    request = trusted.new_request(person, pdfs.one_page(), wishes=wishes)
    order = trusted.folder / "crash" / point
    order.write_text("")
    told = signed(trusted, person, request)
    assert told["nivel"] == "B-T"
    assert not order.exists()
    assert len(trusted.intents(request)) == 1
    assert [each.valid for each in pdfsig(fetched(told))] == [True]


@pytest.mark.parametrize("point", [KEYED, STAMPED, FILE_WRITTEN, PUBLISHED])
def test_kill_in_the_finish_loses_nothing_and_stamps_once(
    trusted: Appliance, person: TestPerson, point: str
) -> None:
    """Whichever role dies of it: one use of the key, one signature, one stamp."""
    wishes = wishing(TimestampPolicy.REQUIRED, SECOND, level=SignatureLevel.B_T)
    request = trusted.new_request(person, pdfs.one_page(), wishes=wishes)
    order = trusted.folder / "crash" / f"{point}-{request}"
    order.write_text(ONCE)
    told = signed(trusted, person, request)
    assert told["nivel"] == "B-T"
    assert not order.exists()
    assert len(trusted.intents(request)) == 1
    pdf = fetched(told)
    assert [each.valid for each in pdfsig(pdf)] == [True]
    assert pdf.count(b"/ByteRange") == 1


def test_revoked_outside_stops_before_the_key_is_used_again(
    trusted: Appliance, world: OutsideServices, outsider: TestPerson
) -> None:
    """Found at the finish: given back; the next call does not look at its password."""
    with trusted.client(outsider) as client:
        certificate = _certificate(client)
        world.site.revoked.add(certificate.serial_number)
        _forget(trusted)
        wishes = wishing(TimestampPolicy.REQUIRED, SECOND)
        request = trusted.new_request(outsider, pdfs.one_page(), wishes=wishes)
        problem(sign(client, outsider, request), 409, "CERTIFICATE_NOT_USABLE")
        assert len(trusted.intents(request)) == 1
        wrong = sign(client, outsider, request, password="otra clave de firma")
        problem(wrong, 409, "CERTIFICATE_NOT_USABLE")
        assert len(trusted.intents(request)) == 1
        (held,) = client.get("/credenciales").json()
        assert held["estado"] in {"en_revocacion", "revocada"}
        assert state_of(client, request) == "pendiente"


def _publishers(appliance: Appliance, request: int) -> set[str]:
    """Roles that the audit names as who published a document."""

    async def read(front: Any) -> set[str]:
        async with front.core.store.read() as transaction:
            rows = await transaction.audit.of_request(request)
        return {
            row.event.actor.split(":")[1].split("/")[0]
            for row in rows
            if row.event.event is EventKind.REQUEST_SIGNED
        }

    found: set[str] = appliance.do(read)
    return found


def _certificate(client: httpx.Client) -> x509.Certificate:
    (held,) = client.get("/credenciales").json()
    answer = client.get(
        f"/credenciales/{held['id']}/certificado",
        headers={"Accept": "application/pkix-cert"},
    )
    return x509.load_der_x509_certificate(answer.content)


def _forget(appliance: Appliance) -> None:
    """Forget what is kept of outside CAs, as if its time were over."""

    async def forget(front: Any) -> None:
        async with front.core.store.write() as transaction:
            await ExternalStatusStore(transaction).forget(
                datetime(2100, 1, 1, tzinfo=UTC)
            )

    appliance.do(forget)
