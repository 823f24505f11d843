"""K14: `/verificar/{code}` says *Firmado* for a signature that never was.

The forger writes rows, as whoever may write to the database: a code, a completed use of
a key, a signed document. What they cannot write is a file with that signature in it.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Final

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from sqlalchemy import insert, text

from appliance.bootstrap import ServiceRegistry
from appliance.database.engines import open_engines
from appliance.database.tables import trust_anchor
from appliance.domain.appearance.details import CODE_CHARACTERS, CODE_LENGTH
from appliance.domain.ids import new_id
from appliance.domain.pki.trust_store import AnchorPurpose
from tests.functional.signing.test_sign_fields import field_of
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign
from tests.support.documents import pdfs
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.software_signer import signed as stock_signed
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, named, spki_of
from tests.support.processes.event_loops import run_apart

_ADDRESSES: Final = count(1)
SIGNED: Final = "<dd>Firmado</dd>"
REFUTED: Final = "<dd>No válida</dd>"
UNCHECKED: Final = "<dd>Sin comprobar</dd>"


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def appliance(request: pytest.FixtureRequest) -> Appliance:
    """An appliance on each database."""
    found: Appliance = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def signer(appliance: Appliance) -> TestPerson:
    """Somebody who can sign there."""
    return appliance.new_person()


def new_code() -> str:
    """A code that nobody was given."""
    return "".join(secrets.choice(CODE_CHARACTERS) for _ in range(CODE_LENGTH))


def look(appliance: Appliance, code: str) -> str:
    """The page of a code, each time for another address: they have rates."""
    address = f"127.0.1.{next(_ADDRESSES)}"
    with httpx.Client(
        transport=httpx.HTTPTransport(local_address=address), timeout=60
    ) as client:
        answer = client.get(
            f"{appliance.base_url}/verificar/{code}", headers={"Accept-Language": "es"}
        )
    assert answer.status_code == httpx.codes.OK
    return answer.text


def signed_with_code(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> tuple[int, str, str]:
    """Sign a document with a QR code: request, code and SHA-256."""
    request = appliance.new_request(signer, pdfs.one_page())
    answer = sign(client, signer, request, qr=True)
    pdf = httpx.get(answer.json()["documentoFirmado"], timeout=60).content
    said, _ = field_of(pdf)
    return request, said.rpartition("/")[2], answer.json()["sha256"]


def alter(appliance: Appliance, *statements: str, **values: object) -> list[str]:
    """Run SQL behind everybody's back; gives the first row of the last statement."""

    async def run() -> list[str]:
        engines = open_engines(appliance.settings)
        row = None
        try:
            async with engines.writer.begin() as connection:
                for statement in statements:
                    done = await connection.execute(text(statement), values)
                    row = done.first() if done.returns_rows else None
        finally:
            await engines.dispose()
        return [] if row is None else [str(each) for each in row]

    return run_apart(run())


def code_of(appliance: Appliance, request: int) -> str:
    """The code of a request's signature."""
    query = "SELECT code FROM activation_item WHERE request = :request"
    return alter(appliance, query, request=request)[0]


def original_of(appliance: Appliance, request: int) -> str:
    """SHA-256 of the document that is to be signed."""
    query = (
        "SELECT d.sha256 FROM document d JOIN signature_request r "
        "ON r.document = d.id WHERE r.id = :request"
    )
    return alter(appliance, query, request=request)[0]


_ADD: Final = (
    (
        "INSERT INTO activation (id, person, credential, state, factors, created, "
        "claim_by, fence, reason) SELECT :made, person, credential, state, factors, "
        "created, claim_by, fence, reason FROM activation WHERE id = :activation"
    ),
    (
        "INSERT INTO activation_item (activation, request, code, seq, "
        "document_sha256, params, params_sha256, state, reason, stamp) "
        "SELECT :made, :request, :code, seq, document_sha256, params, "
        "params_sha256, state, reason, stamp "
        "FROM activation_item WHERE activation = :activation"
    ),
    (
        "INSERT INTO intent (id, activation, item, attempt, digest, state, at) "
        "SELECT :made, :made, item, attempt, digest, state, at FROM intent "
        "WHERE activation = :activation"
    ),
    (
        "INSERT INTO signed_document (request, version, integrator, sha256, "
        "size_bytes, level, made) "
        "SELECT :request, 1, integrator, :sha256, size_bytes, level, made "
        "FROM signed_document WHERE request = :other AND version = 1"
    ),
)
_TAKE: Final = (
    "DELETE FROM signed_document WHERE request = :request",
    "DELETE FROM intent WHERE activation = :made",
    "DELETE FROM activation_item WHERE activation = :made",
    "DELETE FROM activation WHERE id = :made",
)


@contextmanager
def forged(
    appliance: Appliance, request: int, other: int, sha256: str
) -> Iterator[str]:
    """A signature of a request that has none, like that of another; its code.

    Args:
        appliance: up.
        request: that is said to be signed.
        other: a signed one, whose rows are copied.
        sha256: of the file that is said to be the signed document.
    """
    query = "SELECT activation FROM activation_item WHERE request = :request"
    values = {
        "made": new_id(),
        "activation": alter(appliance, query, request=other)[0],
        "request": request,
        "other": other,
        "code": new_code(),
        "sha256": sha256,
    }
    alter(appliance, *_ADD, **values)
    try:
        yield str(values["code"])
    finally:
        alter(appliance, *_TAKE, **values)


def test_signature_that_is_there_is_confirmed(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """By the file: code, signer, level and SHA-256; told again without the sandbox."""
    _, code, sha256 = signed_with_code(appliance, signer, client)

    for _ in range(2):
        page = look(appliance, code)
        assert SIGNED in page
        assert sha256 in page
        assert "se verificó en el documento guardado" in page
        assert "no está escrito en el documento" not in page


def test_signature_without_a_code_in_the_document(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """Found by the request's number in the field's name; the page says what lacks."""
    request = appliance.new_request(signer, pdfs.one_page())
    assert sign(client, signer, request).status_code == httpx.codes.OK

    page = look(appliance, code_of(appliance, request))

    assert SIGNED in page
    assert "no está escrito en el documento" in page


def test_code_of_a_signature_that_never_was(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """Another request of the same person, with the file of the one that is signed."""
    signed, _, sha256 = signed_with_code(appliance, signer, client)
    request = appliance.new_request(signer, pdfs.one_page())

    with forged(appliance, request, signed, sha256) as code:
        page = look(appliance, code)

    assert REFUTED in page
    assert sha256 not in page
    assert SIGNED not in page


def test_document_that_nobody_signed(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """The file is kept, and holds no signature at all."""
    signed, _, _ = signed_with_code(appliance, signer, client)
    request = appliance.new_request(signer, pdfs.one_page())
    original = original_of(appliance, request)

    with forged(appliance, request, signed, original) as code:
        assert REFUTED in look(appliance, code)


@pytest.fixture
def foreign_ca(appliance: Appliance) -> Iterator[OutsideCa]:
    """A CA whose root the record calls trusted, and no file."""
    made = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    ident = new_id()

    async def add(front: ServiceRegistry) -> None:
        async with front.core.store.write() as transaction:
            await transaction.connection.execute(
                insert(trust_anchor).values(
                    id=ident,
                    certificate=der(made.root),
                    sha256=made.root.fingerprint(hashes.SHA256()).hex(),
                    purpose=AnchorPurpose.SIGNERS.value,
                    not_after=made.root.not_valid_after_utc,
                    added=datetime.now(UTC),
                )
            )

    appliance.do(add)
    yield made
    alter(appliance, "DELETE FROM trust_anchor WHERE id = :ident", ident=ident)


def signed_under(ca: OutsideCa, signer: TestPerson, field: str) -> bytes:
    """A file with a sound signature in somebody's name, by a key of the forger's."""
    key = ec_key()
    subject = named(signer.name, f"CUIL {signer.cuil}")
    certificate = ca.certify(spki_of(key), signer.cuil, subject=subject)
    forger = SoftwareSigner(key, der(certificate), (der(ca.issuing), der(ca.root)))
    return stock_signed(pdfs.one_page(), field=field, by=forger)


def test_signature_under_a_root_of_the_record(
    appliance: Appliance,
    signer: TestPerson,
    client: httpx.Client,
    foreign_ca: OutsideCa,
) -> None:
    """Whoever writes to the database trusts a CA of their own there."""
    signed, _, _ = signed_with_code(appliance, signer, client)
    request = appliance.new_request(signer, pdfs.one_page())
    pdf = signed_under(foreign_ca, signer, f"Firma-{request}")
    sha256 = original_of(appliance, appliance.new_request(signer, pdf))

    with forged(appliance, request, signed, sha256) as code:
        page = look(appliance, code)

    assert UNCHECKED in page
    assert sha256 not in page


def test_file_that_is_not_there(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """Nothing can be said of it: neither a yes nor a no."""
    signed, _, _ = signed_with_code(appliance, signer, client)
    request = appliance.new_request(signer, pdfs.one_page())

    with forged(appliance, request, signed, secrets.token_hex(32)) as code:
        page = look(appliance, code)

    assert UNCHECKED in page
    assert SIGNED not in page
    assert REFUTED not in page


def test_another_code_on_a_signature_that_is_there(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """The document names its own code among the signed bytes."""
    request, code, _ = signed_with_code(appliance, signer, client)
    say = "UPDATE activation_item SET code = :code WHERE request = :request"
    other = new_code()

    alter(appliance, say, code=other, request=request)
    try:
        assert REFUTED in look(appliance, other)
    finally:
        alter(appliance, say, code=code, request=request)
    assert SIGNED in look(appliance, code)


def test_later_version_that_is_another_file(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """K7: version 2 is an unsigned file; and an earlier version that never was."""
    request, code, sha256 = signed_with_code(appliance, signer, client)
    original = original_of(appliance, appliance.new_request(signer, pdfs.one_page()))
    add = (
        "INSERT INTO signed_document (request, version, integrator, sha256, "
        "size_bytes, level, made) SELECT request, :version, integrator, :original, "
        "9, level, made FROM signed_document WHERE request = :request AND version = 1"
    )
    gone = "DELETE FROM signed_document WHERE request = :request AND sha256 = :original"
    values = {"request": request, "original": original}

    alter(appliance, add, version=2, **values)
    later = look(appliance, code)
    alter(appliance, gone, add, version=0, **values)
    earlier = look(appliance, code)
    alter(appliance, gone, **values)

    assert REFUTED in later
    assert SIGNED in earlier
    assert sha256 in earlier
    assert original not in earlier


def test_each_of_several_signers(appliance: Appliance) -> None:
    """Each code leads to its own signature in the newest file, and names its signer."""
    people = [appliance.new_person(name) for name in ("Ana Ruiz", "Blas Paz")]
    requests = appliance.new_process(people, pdfs.one_page())
    codes = []
    for person, request in zip(people, requests, strict=True):
        with appliance.client(person) as client:
            assert sign(client, person, request, qr=True).status_code == httpx.codes.OK
        codes.append(code_of(appliance, request))

    pages = [look(appliance, code) for code in codes]

    assert all(SIGNED in page for page in pages)
    assert "A••• R•••" in pages[0]
    assert "B••• P•••" in pages[1]
    assert "Versiones anteriores" in pages[0]
