"""Code in api, embed, admin or chores, and keys that somebody has.

The code is in the role: it has the role's user of PostgreSQL with all its rights, and
its secrets. On SQLite it writes every table. A front's code is the project's own with
one part replaced: the check of passwords, say.

Source: docs/keys.md "What is claimed", "What is not claimed".
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pyotp
import pytest
from sqlalchemy import Executable, Row, delete, insert, select, text, update

from appliance.api.app import create_api
from appliance.bootstrap import ServiceRegistry, document_sealer
from appliance.database import tables
from appliance.database.rights import Role
from appliance.documents.document_files import NewDocument, name_of
from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.domain.documents.verification import Answer
from appliance.domain.ids import RequestId, new_id
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.requests.request import SignedVersion
from appliance.domain.vocab import EventKind, RequestState, TaskState, VouchedBy
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, UnlockKeys, normalize
from appliance.mail.invitation_mail import LINK
from appliance.people.person_store import PersonStore
from appliance.secrets.key_files import KeyFile
from appliance.signing.signature_lookup import KnownSignature, Verification
from tests.functional.powers.role_scene import (
    DATABASES,
    FRONTS,
    ROLES,
    Installed,
    credential_of,
    forged_consent,
)
from tests.functional.powers.test_k13_one_use import consented
from tests.functional.powers.test_signature_page import (
    _ADD,
    _TAKE,
    REFUTED,
    alter,
    new_code,
    original_of,
)
from tests.functional.powers.test_signature_page import SIGNED as SIGNED_PAGE
from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.http_calls import sign_at_last
from tests.support.documents import pdfs
from tests.support.faces.enrolment_page import opening_of, seed_of
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import read_rows, write
from tests.support.patience import CALL_S
from tests.support.processes.scratch import free_port

PENDING, SIGNED = RequestState.PENDING.value, RequestState.SIGNED.value


@pytest.fixture(scope="module", params=DATABASES)
def installed(request: pytest.FixtureRequest) -> Iterator[Installed]:
    """On each database; mails wait for a server that is away."""
    mail = f'host = "127.0.0.1"\nport = {free_port()}\ntls = "none"'
    more = f'[mail]\n{mail}\nfrom_address = "firma@rubrica.example"'
    with Installed.made(request.param, more=more) as made:
        yield made


@pytest.fixture(scope="module")
def victim(installed: Installed) -> TestPerson:
    """Somebody who signs."""
    return installed.appliance.new_person("Víctima Uno")


@pytest.fixture(scope="module")
def thief(installed: Installed) -> TestPerson:
    """Somebody who signs, and whose code runs in a role."""
    return installed.appliance.new_person("Ladrona Dos")


def writes_consents(installed: Installed, role: Role) -> bool:
    """Whether a role's user may record activations and their seals."""
    return not installed.has_users or role in FRONTS


async def unlocked(
    front: ServiceRegistry, person: TestPerson, password: str
) -> UnlockKeys:
    """What a password and the pepper give: keys of the person's, by credential."""
    held = await credential_of(front, person)
    async with front.core.store.read() as transaction:
        kept = await PersonStore(transaction).signing_secret(person.id)
    assert kept is not None
    passwords = front.signing._attempts._passwords
    found = await passwords.check(normalize(password), kept, [held.id])
    return {held.id: found.unlock.get(held.id, secrets.token_bytes(32))}


# -- sign, swap, batch, twice: with a password that passes through ------------------


@pytest.mark.parametrize("role", FRONTS)
def test_typed_password_signs_what_the_front_likes(
    installed: Installed, victim: TestPerson, role: Role
) -> None:
    """One password for one document: the front signs two others, and one more later.

    Each is a consent of its own in the record, and so nothing tells of it.
    """
    meant, *others = installed.appliance.new_requests(victim, pdfs.one_page(), 4)
    typed = victim.signing_password

    async def take(front: ServiceRegistry) -> UnlockKeys:
        return await unlocked(front, victim, typed)

    unlock = installed.run(role, take)
    assert installed.attempt(role, forged_consent(victim, others[:2], unlock))
    assert [installed.ended(each) for each in others[:2]] == [SIGNED, SIGNED]
    assert installed.attempt(role, forged_consent(victim, others[2:], unlock))
    assert installed.ended(others[2]) == SIGNED

    assert installed.state(meant) == PENDING
    assert installed.findings() == []


@pytest.mark.parametrize("role", ROLES)
def test_without_a_password_nobodys_key_signs(
    installed: Installed, victim: TestPerson, role: Role
) -> None:
    """A consent in a person's name, with an unlock key that is not the person's."""
    request = installed.appliance.new_request(victim, pdfs.one_page())
    held = installed.appliance.credential(victim)
    unlock = {held.id: secrets.token_bytes(32)}

    is_written = installed.attempt(role, forged_consent(victim, [request], unlock))

    assert is_written is writes_consents(installed, role)
    assert installed.ended(request) == PENDING
    assert installed.audited(EventKind.KEY_INTENDED, request) == []
    if is_written:
        (back,) = installed.audited(EventKind.REQUEST_RETURNED, request)
        assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "outer")


@pytest.mark.parametrize("role", ROLES)
def test_own_password_opens_no_key_of_another(
    installed: Installed, victim: TestPerson, thief: TestPerson, role: Role
) -> None:
    """A consent of the thief's, by the victim's credential and their own password."""
    request = installed.appliance.new_request(thief, pdfs.one_page())
    theirs = installed.appliance.credential(victim)
    own = installed.appliance.credential(thief)

    async def take(front: ServiceRegistry) -> UnlockKeys:
        return await unlocked(front, thief, thief.signing_password)

    unlock = {theirs.id: installed.appliance.do(take)[own.id]}
    forging = forged_consent(thief, [request], unlock, theirs)
    is_written = installed.attempt(role, forging)

    assert is_written is writes_consents(installed, role)
    assert installed.ended(request) == PENDING
    assert installed.audited(EventKind.KEY_INTENDED, request) == []
    if is_written:
        (back,) = installed.audited(EventKind.REQUEST_RETURNED, request)
        assert back["reason"] == "CERTIFICATE_NOT_USABLE"


# -- key: of the installation, and resident ones ------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_role_moves_no_credential_to_another_key(
    installed: Installed, role: Role
) -> None:
    """PostgreSQL refuses what names a key; what SQLite lets in, workers refuse.

    See `test_key_of_another`, which tries each of these on SQLite.
    """
    table = tables.credential
    person = installed.appliance.new_person()
    held = installed.appliance.credential(person)
    for values in (
        {"key_mode": "resident", "cka_id": b"rubrica-ca-1"},
        {"key_token": "pki"},
        {"spki": b"-"},
        {"person": person.id},
        {"blob_w": b"-"},
        {"master": 2},
    ):
        moved = update(table).where(table.c.id == held.id).values(values)
        is_done = installed.write(role, moved, keep=False)
        assert is_done is not installed.has_users, values


# -- certify ------------------------------------------------------------------------


def issue_asked_for(
    person: TestPerson, key: bytes
) -> Callable[[ServiceRegistry], Awaitable[None]]:
    """Code that asks for a key in somebody's name, with an unlock key of its own."""

    async def work(front: ServiceRegistry) -> None:
        plan = await front.issuing.plan()
        async with front.core.store.write() as transaction:
            await front.issuing.submit(
                transaction,
                plan,
                person.id,
                VouchedBy.DEMO,
                {plan.credential: key},
                f"person:{person.id}",
            )

    return work


def keys_of(installed: Installed, person: TestPerson) -> list[Row[Any]]:
    """A person's credentials, oldest first."""
    rows = read_rows(installed.appliance, tables.credential)
    own = [row for row in rows if row.person == person.id]
    return sorted(own, key=lambda row: row.created)


def notices_of(installed: Installed, person: TestPerson) -> list[str]:
    """Kinds of notices to a person that chores are still to send or have sent."""
    rows = read_rows(installed.appliance, tables.security_notice)
    return [row.kind for row in rows if row.person == person.id]


@pytest.mark.parametrize("role", ROLES)
def test_key_that_a_role_asks_for(installed: Installed, role: Role) -> None:
    """K2: `api` alone may, and on SQLite each role; notice and audit tell of it.

    The new key opens by what that code chose, and signs in the person's name.
    """
    person = installed.appliance.new_person()
    key, may = secrets.token_bytes(32), role is Role.API or not installed.has_users
    notices = Counter(notices_of(installed, person))

    is_asked = installed.attempt(role, issue_asked_for(person, key))

    assert is_asked is may
    if not may:
        assert len(keys_of(installed, person)) == 1
        return
    until(lambda: len(keys_of(installed, person)) > 1)
    request = installed.appliance.new_request(person, pdfs.one_page())
    made = installed.appliance.credential(person)
    assert made.id == keys_of(installed, person)[-1].id
    forging = forged_consent(person, [request], {made.id: key})
    assert installed.attempt(Role.API, forging)
    assert installed.ended(request) == SIGNED
    assert Counter(notices_of(installed, person)) - notices == {"certified": 1}
    found = installed.findings()
    assert any("another key was made while the one before" in line for line in found)


@pytest.mark.parametrize("role", ROLES)
def test_link_that_a_role_makes(installed: Installed, role: Role) -> None:
    """K5: `admin` invites an active person again, opens the link, and signs as them.

    The person is told of enrolment and certificate by other roles; the audit names the
    officer that was not asked. PostgreSQL lets no other role do so.
    """
    person = installed.appliance.new_person()
    notices = Counter(notices_of(installed, person))
    links: list[str] = []

    async def invite(front: ServiceRegistry) -> None:
        made = await front.reissue.reissue("console:none", person.id)
        links.append(made.url)

    is_made = installed.attempt(role, invite)

    assert is_made is (role is Role.ADMIN or not installed.has_users)
    if not is_made:
        return
    thiefs = enrolled(installed, person, links[0])
    request = installed.appliance.new_request(thiefs, pdfs.one_page())
    with installed.appliance.client(thiefs) as client:
        assert sign_at_last(client, thiefs, request).status_code == 200
    told = Counter(notices_of(installed, person)) - notices
    assert {"enrolled", "certified"} <= told.keys()
    (row,) = [
        row
        for row in read_rows(installed.appliance, tables.audit_event)
        if row.event == EventKind.PERSON_REISSUED.value
        and row.detail["person"] == person.id
    ]
    assert row.actor == "console:none"


@pytest.mark.parametrize("role", ROLES)
def test_link_that_waits_to_be_mailed(installed: Installed, role: Role) -> None:
    """Chores, who mail it, can open it first; PostgreSQL shows it to no other role.

    Whom it was for finds it used. Nothing else tells: it is an enrolment as any.
    """
    cuil = installed.appliance.next_cuil()
    invited = installed.appliance.do(
        lambda front: front.invitations.invite(
            "operator",
            cuil,
            "Invitada Tres",
            f"{cuil}@demo.example",
            VouchedBy.DEMO,
            by_mail=True,
        )
    )
    mail = tables.mail_message
    links: list[str] = []

    async def read(front: ServiceRegistry) -> None:
        async with front.core.store.read() as transaction:
            query = select(mail.c.id, mail.c.link_sealed).where(
                mail.c.person == invited.person
            )
            row = (await transaction.connection.execute(query)).one()
        link = front.sealer.open(
            row.link_sealed, table=LINK.table, row=row.id, column=LINK.column
        )
        links.append(link.decode())

    is_read = installed.attempt(role, read)

    assert is_read is (role is Role.CHORES or not installed.has_users)
    if not is_read:
        return
    person = TestPerson(
        invited.person, cuil, "", "", "", "", pyotp.TOTP(pyotp.random_base32())
    )
    thiefs = enrolled(installed, person, links[0])
    request = installed.appliance.new_request(thiefs, pdfs.one_page())
    with installed.appliance.client(thiefs) as client:
        assert sign_at_last(client, thiefs, request).status_code == 200
    over = httpx.get(invited.url, timeout=CALL_S)
    assert "<form" not in over.text


@pytest.mark.parametrize("role", [Role.EMBED, Role.ADMIN, Role.CHORES])
def test_task_that_a_role_puts_back_makes_no_key(
    installed: Installed, role: Role
) -> None:
    """Its seal is gone; chores alone may have the worker look again on PostgreSQL."""
    person = installed.appliance.new_person()
    task = tables.hsm_task
    (made,) = keys_of(installed, person)
    back = (
        update(task)
        .where(task.c.id == made.id)
        .values(state="waiting", lease_owner=None)
    )

    is_back = installed.write(role, back)

    assert is_back is (role is Role.CHORES or not installed.has_users)
    ends = {TaskState.DONE.value, TaskState.FAILED.value}

    def state() -> str:
        rows = read_rows(installed.appliance, task)
        return str(next(row.state for row in rows if row.id == made.id))

    until(lambda: state() in ends)
    assert len(keys_of(installed, person)) == 1
    issued = [
        row
        for row in read_rows(installed.appliance, tables.certificate)
        if row.credential == made.id
    ]
    assert len(issued) == 1


def enrolled(installed: Installed, person: TestPerson, link: str) -> TestPerson:
    """Whoever opened a link first, in the person's place."""
    page = httpx.get(link, timeout=CALL_S).text
    totp = pyotp.TOTP(seed_of(page))
    login, signing = "ingreso de la ladrona", "firma de la ladrona"
    form = {
        "login_password": login,
        "login_password_again": login,
        "signing_password": signing,
        "signing_password_again": signing,
        "totp_code": totp.now(),
        "opening": opening_of(page),
    }
    before = len(keys_of(installed, person))
    done = httpx.post(link, data=form, timeout=CALL_S)
    assert done.status_code == httpx.codes.OK, done.text
    until(lambda: len(keys_of(installed, person)) > before)
    return replace(person, login_password=login, signing_password=signing, totp=totp)


# -- twice -----------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_consent_that_a_role_puts_back(
    installed: Installed, victim: TestPerson, role: Role
) -> None:
    """All rows as they were before it was signed: the host does not sign again.

    PostgreSQL lets no role do that. On SQLite the host's journal knows; what another
    host does, `test_consent_opens_once_on_each_host_and_is_told_of` tries.
    """
    with held(installed.appliance):
        kept = consented(installed.appliance, victim)
    assert installed.ended(kept.request) == SIGNED

    written = [installed.write(role, each) for each in kept.put_back()[:-1]]

    assert all(written) is not installed.has_users
    if installed.has_users:
        # Fronts seal new consents; to whom, the sealed bytes say.
        assert any(written) is (role in FRONTS or role is Role.CHORES)
    else:
        write(installed.appliance, kept.put_back()[-1])
        assert installed.ended(kept.request) == PENDING
        (back,) = installed.audited(EventKind.REQUEST_RETURNED, kept.request)
        assert back["layer"] == "journal"
    assert len(installed.audited(EventKind.KEY_USED, kept.request)) == 1


# -- version and page ---------------------------------------------------------------


def downloaded(
    installed: Installed, person: TestPerson, request: int
) -> httpx.Response:
    """What a signer is served as the signed document."""
    with installed.appliance.client(person) as client:
        return client.get(f"/solicitudes/{request}/documento")


def served(installed: Installed, person: TestPerson, request: int) -> bytes:
    """The file that a signer gets; empty where the answer is an error or is cut off."""
    try:
        answer = downloaded(installed, person, request)
    except httpx.RemoteProtocolError:
        return b""
    return answer.content if answer.status_code == httpx.codes.OK else b""


@pytest.mark.parametrize("role", ROLES)
def test_version_that_a_role_adds(
    installed: Installed, victim: TestPerson, role: Role
) -> None:
    """K7: an unsigned file as the newest version; PostgreSQL refuses it."""
    request = installed.appliance.new_request(victim, pdfs.one_page())
    with installed.appliance.client(victim) as client:
        assert sign_at_last(client, victim, request).status_code == 200
    true = served(installed, victim, request)
    forged = pdfs.one_page(text=f"falso de {role}")
    signed = tables.signed_document
    (row,) = [
        row for row in read_rows(installed.appliance, signed) if row.request == request
    ]

    async def put(front: ServiceRegistry) -> None:
        await front.core.documents.put(row.integrator, forged)

    installed.run(role, put)
    sha256 = hashlib.sha256(forged).hexdigest()
    values = {**row._mapping, "version": 2, "sha256": sha256, "size_bytes": len(forged)}
    is_added = installed.write(role, insert(signed).values(values))

    assert is_added is not installed.has_users
    assert served(installed, victim, request) == (forged if is_added else true)
    if is_added:
        assert any(sha256 in line for line in installed.findings())
        gone = delete(signed).where(signed.c.sha256 == sha256)
        write(installed.appliance, gone)


def test_file_in_the_place_of_a_signed_one_is_not_served(
    installed: Installed, victim: TestPerson
) -> None:
    """Each role has the document key and the folder: the hash in the record decides."""
    request = installed.appliance.new_request(victim, pdfs.one_page())
    with installed.appliance.client(victim) as client:
        assert sign_at_last(client, victim, request).status_code == 200
    (row,) = [
        row
        for row in read_rows(installed.appliance, tables.signed_document)
        if row.request == request
    ]

    async def key_of(front: ServiceRegistry) -> bytes:
        sealer = document_sealer(front.settings)
        keys = IntegratorDocumentKeys(front.core.store, sealer, front.clock)
        found = await keys.get(row.integrator)
        assert found is not None
        return found

    key = installed.run(Role.CHORES, key_of)
    forged = NewDocument(row.integrator, [pdfs.one_page(text="falso")], key)
    forged.sha256 = row.sha256
    folder = installed.appliance.settings.documents_dir
    place = folder / name_of(row.integrator, row.sha256)
    true = place.read_bytes()
    try:
        for content in (b"".join(forged.sealed()), pdfs.one_page(text="falso")):
            place.write_bytes(content)
            assert served(installed, victim, request) == b""
    finally:
        place.write_bytes(true)
    assert hashlib.sha256(served(installed, victim, request)).hexdigest() == row.sha256


def page_of(installed: Installed, code: str) -> str:
    """The page of a code, whether anything is known of it or not."""
    address = f"{installed.appliance.base_url}/verificar/{code}"
    return httpx.get(address, headers={"Accept-Language": "es"}, timeout=CALL_S).text


@pytest.mark.parametrize("role", ROLES)
def test_page_of_a_signature_that_a_role_made_up(
    installed: Installed, victim: TestPerson, role: Role
) -> None:
    """A code, a use of a key and a signed document, as far as the role may say so."""
    signed, request = installed.appliance.new_requests(victim, pdfs.one_page(), 2)
    with installed.appliance.client(victim) as client:
        assert sign_at_last(client, victim, signed).status_code == 200
    own = "SELECT activation FROM activation_item WHERE request = :request"
    code = new_code()
    values = {
        "made": new_id(),
        "activation": alter(installed.appliance, own, request=signed)[0],
        "request": request,
        "other": signed,
        "code": code,
        "sha256": original_of(installed.appliance, request),
    }

    def bound(statement: str) -> Executable:
        named = {name: values[name] for name in values if f":{name}" in statement}
        return text(statement).bindparams(**named)

    try:
        written = [installed.write(role, bound(each)) for each in _ADD]
        page = page_of(installed, code)
    finally:
        write(installed.appliance, *map(bound, _TAKE))

    assert SIGNED_PAGE not in page
    assert written[-1] is not installed.has_users
    assert (REFUTED in page) is not installed.has_users


def test_page_is_what_api_says(installed: Installed, victim: TestPerson) -> None:
    """Code in `api` has the page say *Firmado* of a code that nobody was given."""
    code = new_code()

    async def lie(front: ServiceRegistry) -> str:
        class Liar(Verification):
            async def look(self, *_: object) -> KnownSignature:
                now = front.clock.now()
                version = SignedVersion(RequestId(1), 1, "B-T", "0" * 64, 9, now)
                return KnownSignature(Answer.YES, victim.name, now, version)

        liar = Liar(front.core.store, front.verification._proofs)
        app = create_api(replace(front, verification=liar))
        answer = await app.test_client().get(
            f"/verificar/{code}", headers={"Accept-Language": "es"}
        )
        return await answer.get_data(as_text=True)

    page = installed.run(Role.API, lie)

    assert SIGNED_PAGE in page
    assert SIGNED_PAGE not in page_of(installed, code)


# -- guess --------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_guesses_by_what_a_role_has(
    installed: Installed, victim: TestPerson, role: Role
) -> None:
    """Fronts have salt, verifier and pepper, and guess by themselves, uncounted.

    `admin` has the salt and no pepper, `chores` not even that on PostgreSQL.
    """
    kept = tables.signing_secret
    before = list(read_rows(installed.appliance, kept))
    may_read = installed.write(role, select(kept))
    assert may_read is (not installed.has_users or role is not Role.CHORES)
    tries = {"una adivinanza", victim.signing_password, "otra adivinanza"}

    async def guess(front: ServiceRegistry) -> set[str]:
        async with front.core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(victim.id)
        assert secret is not None
        peppers = KeyFile(front.settings.secrets.pepper_file)
        # Neither the console nor chores read the pepper's file.
        own = peppers if role in FRONTS else KeyRing.of(secrets.token_bytes(32))
        passwords = SigningPasswords(own, HashSlots())
        return {
            each
            for each in tries
            if (await passwords.check(normalize(each), secret)).right
        }

    if may_read:
        found = installed.run(role, guess)
        assert found == ({victim.signing_password} if role in FRONTS else set())
    assert list(read_rows(installed.appliance, kept)) == before


# -- silent -------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_chain_that_a_role_computes_again(installed: Installed, role: Role) -> None:
    """Of a signing worker: refused on PostgreSQL; on SQLite nothing tells of it."""
    writer, event = tables.audit_writer, tables.audit_event
    chain = next(
        row
        for row in read_rows(installed.appliance, writer)
        if row.role.startswith("signing/")
    )
    rows = [
        row for row in read_rows(installed.appliance, event) if row.writer == chain.id
    ]
    last = max(rows, key=lambda row: row.n)
    where = (event.c.writer == chain.id) & (event.c.n == last.n)
    cut = (
        delete(event).where(where),
        update(writer)
        .where(writer.c.id == chain.id)
        .values(n=last.n - 1, hash=last.prev),
    )
    restored = (
        insert(event).values(dict(last._mapping)),
        update(writer).where(writer.c.id == chain.id).values(n=last.n, hash=last.hash),
    )

    is_cut = installed.write(role, *cut)

    assert is_cut is not installed.has_users
    if is_cut:
        done = installed.appliance.rubrica("audit", "verify", "--chains-only")
        write(installed.appliance, *restored)
        assert done.returncode == 0, done.stdout
