"""Guesses at a signing password by who writes to the database (finding K6).

The attacker reads and writes every row, and has an account with a password. They have
neither pepper nor lookup key. Two ways: the victim's salt and verifier in a row of the
attacker, and the victim's own row whose count and lock are reset before each guess.

Source: docs/keys.md "What bounds guesses".
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Table, delete, select, update

from appliance.database.tables import attempt_slot, credential, signing_secret
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, RequestId, new_id
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import CredentialState
from appliance.identity.registration_officers import RegistrationOfficers
from appliance.keys import password_hashing, signing_password
from appliance.keys.change_password import PasswordChange
from appliance.keys.count_clearings import CountClearings
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import SigningSettings
from appliance.system.background import Shielded
from tests.integration.keys.locked_key import (
    FIRST,
    SECOND,
    LockedKeyServices,
    add_key,
    locked_key_services,
)
from tests.support.factories.signing_host import (
    CLEARINGS,
    INSTALLATION,
    password_attempts,
)
from tests.support.installation.record import DATA_KEY, PASSWORD, CoreFixture

pytestmark = pytest.mark.storage

C = ErrorCode
OWN = b"la clave del atacante"
LIMIT = 3
"""Wrong passwords that lock, in `locked_key_services`."""


@dataclass
class Attack:
    """A victim, an attacker, and a front that both sign at."""

    victim: LockedKeyServices
    attacker: Signer
    request: RequestId

    @property
    def core(self) -> CoreFixture:
        """The record, which the attacker writes to."""
        return self.victim.core

    @property
    def attempts(self) -> PasswordAttempts:
        """What the front checks passwords by."""
        return self.victim.attempts

    async def sql(self, statement: Any) -> None:
        """Write past the appliance."""
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(statement)

    async def rows(self, table: Table) -> list[Any]:
        """All rows of a table."""
        async with self.core.store.read() as transaction:
            return list(await transaction.connection.execute(select(table)))

    async def copy_verifier(self, to: PersonId | None = None) -> None:
        """Put the victim's salt and verifier into the attacker's row."""
        secret = await self.victim.secret()
        await self.sql(
            update(signing_secret)
            .where(signing_secret.c.person == (to or self.attacker.person))
            .values(
                salt=secret.salt,
                argon2=secret.argon2,
                pepper_version=secret.pepper_version,
                verifier_sha256=secret.verifier_sha256,
            )
        )

    async def reset(self) -> None:
        """Say that nobody was ever wrong."""
        await self.sql(delete(attempt_slot))
        await self.sql(update(signing_secret).values(counted=0, locked_at=None))

    async def tried(
        self, signer: Signer, password: bytes, attempts: PasswordAttempts | None = None
    ) -> tuple[ErrorCode, object] | None:
        """How a password is refused, with what is told of the tries left."""
        checker = attempts or self.attempts
        try:
            right = await checker.check(signer, self.request, password)
        except ApplianceError as exc:
            return exc.code, exc.extras.get("attemptsLeft")
        async with self.core.store.write() as transaction:
            await checker.passed(transaction, signer, right)
        return None

    async def guesses(self, signer: Signer, count: int) -> list[ErrorCode]:
        """Codes of fresh wrong guesses, the record reset before each."""
        codes = []
        for _ in range(count):
            await self.reset()
            refusal = await self.tried(signer, new_id().encode())
            assert refusal is not None
            codes.append(refusal[0])
        return codes


async def another_person(victim: LockedKeyServices, password: bytes) -> Signer:
    """Somebody with a key that their own password opens."""
    name = CredentialId(new_id())
    made = await victim.passwords.derive_new(password, (name,))
    signer = await victim.core.add_signer(made.secret, credential=False)
    await add_key(victim.core, signer, name, made.unlock[name])
    return signer


@pytest.fixture
async def attack(core: CoreFixture) -> Attack:
    """On each database."""
    victim = await locked_key_services(core)
    attacker = await another_person(victim, OWN)
    return Attack(victim, attacker, await victim.request())


# -- the victim's verifier in a row of the attacker's ---------------------------------


async def test_copied_verifier_answers_right_and_wrong_guesses_alike(
    attack: Attack,
) -> None:
    """Same code, same count left, same rows: nothing tells that a guess was right."""
    told: list[Any] = []
    for guess in (PASSWORD, b"no es la clave"):
        await attack.copy_verifier()
        told.append(await attack.tried(attack.attacker, guess))
        secret = await attack.victim.secret()
        (slot,) = await attack.rows(attempt_slot)
        assert slot.outcome == "wrong"
        assert slot.verifier_sha256 != secret.verifier_sha256
        (counted,) = [
            row.counted
            for row in await attack.rows(signing_secret)
            if row.person == attack.attacker.person
        ]
        told.append((counted, await attack.core.audited()))
        await attack.reset()

    assert told[0] == told[2] == (C.SIGN_PASSWORD_WRONG, LIMIT - 1)
    (first, events), (second, later) = told[1], told[3]
    assert (first, second) == (1, 1)
    assert later == [*events, *events[-1:]]


async def test_stored_mark_of_a_guess_is_not_comparable(attack: Attack) -> None:
    """Whoever reads the rows of tries cannot match them with a verifier, or a person.

    Nor with the mark that the victim's own slip of the pen left.
    """
    slip = b"una clave de firmA"
    await attack.tried(attack.victim.signer, slip)
    await attack.copy_verifier()

    await attack.tried(attack.attacker, slip)
    await attack.tried(attack.attacker, PASSWORD)

    marks = [row.verifier_sha256 for row in await attack.rows(attempt_slot)]
    verifiers = {row.verifier_sha256 for row in await attack.rows(signing_secret)}
    assert len(set(marks)) == 3
    assert verifiers.isdisjoint(marks)


@pytest.mark.parametrize("peppers", [1, 2])
async def test_both_failures_do_the_same_work(
    core: CoreFixture, monkeypatch: pytest.MonkeyPatch, peppers: int
) -> None:
    """As many Argon2 and as many locks tried, also where a new pepper is waiting."""
    ring = KeyRing(peppers, {1: FIRST, 2: SECOND})
    victim = await locked_key_services(core, ring)
    older = SigningPasswords(KeyRing.of(FIRST), HashSlots(1))
    name = CredentialId(new_id())
    made = await older.derive_new(OWN, (name,))
    attacker = await core.add_signer(made.secret, credential=False)
    await add_key(core, attacker, name, made.unlock[name])
    attack = Attack(victim, attacker, await victim.request())
    done: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def work(*given: Any, **more: Any) -> Any:
            done.append(name)
            return real(*given, **more)

        return work

    for module, name_of in (
        (password_hashing, "hash_secret_raw"),
        (password_hashing, "_expand"),
        (signing_password, "open_outer"),
    ):
        monkeypatch.setattr(module, name_of, counted(name_of, getattr(module, name_of)))
    await attack.copy_verifier()
    works = []
    for guess in (PASSWORD, b"no es la clave"):
        done.clear()
        refusal = await attack.tried(attacker, guess)
        assert refusal is not None
        works.append(list(done))

    assert works[0] == works[1]
    assert works[0].count("hash_secret_raw") == 1
    assert works[0].count("open_outer") == 1


async def test_copied_verifier_is_no_oracle_elsewhere(attack: Attack) -> None:
    """Nor does the change of a password tell right from wrong."""
    change = PasswordChange(
        attack.core.store,
        attack.attempts,
        attack.victim.passwords,
        attack.victim.logins,
        INSTALLATION,
        Shielded(),
        DATA_KEY,
    )
    codes = []
    for guess in (PASSWORD, b"no es la clave"):
        await attack.copy_verifier()
        await attack.reset()
        call = change.change(attack.attacker, guess, b"una clave nueva")
        codes.append(await attack.victim.code(call))

    assert codes == [C.SIGN_PASSWORD_WRONG] * 2


async def test_victims_key_does_not_open_as_the_attackers(attack: Attack) -> None:
    """The victim's `outer` in the attacker's row is bound to the victim."""
    victims = await attack.victim.credential()
    await attack.copy_verifier()
    await attack.sql(
        update(credential)
        .where(credential.c.person == attack.attacker.person)
        .values(outer=victims.outer, spki=victims.spki)
    )
    copied = await attack.tried(attack.attacker, PASSWORD)
    await attack.sql(
        update(credential)
        .where(credential.c.id == victims.id)
        .values(person=attack.attacker.person)
    )
    moved = await attack.tried(attack.attacker, b"una mas, y otra")
    moved_right = await attack.tried(attack.attacker, PASSWORD)

    assert copied == (C.SIGN_PASSWORD_WRONG, LIMIT - 1)
    assert moved == (C.SIGN_PASSWORD_WRONG, LIMIT - 2)
    # The same one as before counts once.
    assert moved_right == (C.SIGN_PASSWORD_WRONG, LIMIT - 2)


async def test_copies_share_the_count_of_the_original(attack: Attack) -> None:
    """However many accounts an attacker copies it to, the guesses are counted together.

    The count is that of the victim, who is refused as well until it is cleared.
    """
    others = [await another_person(attack.victim, OWN) for _ in range(4)]
    codes = []
    for each in others:
        await attack.copy_verifier(each.person)
        codes += await attack.guesses(each, LIMIT - 1)

    # The limit, and as many again: the first reset without a proof is believed.
    assert codes.count(C.SIGN_PASSWORD_WRONG) == 2 * LIMIT
    assert codes[2 * LIMIT :] == [C.SIGN_LOCKED] * 2
    await attack.reset()
    assert await attack.tried(attack.victim.signer, PASSWORD) == (C.SIGN_LOCKED, None)
    await unlock(attack, attack.victim.signer)
    assert await attack.tried(attack.victim.signer, PASSWORD) is None


async def test_own_right_password_clears_nothing_of_the_victims(
    attack: Attack,
) -> None:
    """Right in the own row, wrong in the copy: the proof is of another salt."""
    own = next(
        row
        for row in await attack.rows(signing_secret)
        if row.person == attack.attacker.person
    )
    codes = []
    for _ in range(4):
        await attack.copy_verifier()
        codes += await attack.guesses(attack.attacker, LIMIT - 1)
        await attack.sql(
            update(signing_secret)
            .where(signing_secret.c.person == attack.attacker.person)
            .values(
                salt=own.salt,
                verifier_sha256=own.verifier_sha256,
                counted=1,
                locked_at=None,
            )
        )
        assert await attack.tried(attack.attacker, OWN) is None
        attack.core.clock.forward(60)

    assert codes.count(C.SIGN_PASSWORD_WRONG) == 2 * LIMIT


async def test_without_a_key_the_verifier_alone_is_shared(attack: Attack) -> None:
    """Who has no key has nothing to open: there the guesses of the victim are shared.

    That is no more than at the victim's own row.
    """
    await attack.sql(
        update(credential)
        .where(credential.c.person == attack.attacker.person)
        .values(state=CredentialState.REVOKED.value)
    )
    await attack.copy_verifier()
    codes = await attack.guesses(attack.attacker, 2 * LIMIT)
    assert codes == [C.SIGN_PASSWORD_WRONG] * 2 * LIMIT
    await attack.reset()

    right = attack.victim.issuing.again(attack.attacker, PASSWORD.decode())
    assert await attack.tried(attack.attacker, PASSWORD) == (C.SIGN_LOCKED, None)
    # `rubrica person issue` is a process of its own, and remembers nothing.
    await attack.reset()
    assert await attack.victim.code(right) is None


# -- the victim's own row, reset ------------------------------------------------------


async def unlock(attack: Attack, signer: Signer) -> None:
    """An officer lifts the lock."""
    officers = RegistrationOfficers(attack.core.store, attack.core.clock, CLEARINGS)
    await officers.unlock("officer", signer.person)


async def test_reset_counts_give_no_further_guesses(attack: Attack) -> None:
    """Twice the limit is all there is; the lock comes back where an officer sees it."""
    victim = attack.victim.signer
    codes = await attack.guesses(victim, 4 * LIMIT)

    assert codes == [C.SIGN_PASSWORD_WRONG] * 2 * LIMIT + [C.SIGN_LOCKED] * 2 * LIMIT
    await attack.reset()
    assert await attack.tried(victim, PASSWORD) == (C.SIGN_LOCKED, None)
    secret = await attack.victim.secret()
    assert (secret.counted, secret.locked_at) == (LIMIT, attack.core.now)
    await unlock(attack, victim)
    assert await attack.tried(victim, PASSWORD) is None


async def test_each_pretended_unlocking_takes_longer(attack: Attack) -> None:
    """Guesses of the first days, an hour apart: the pause doubles up to a day."""
    victim, by_hour = attack.victim.signer, []
    for _ in range(4 * 24):
        codes = await attack.guesses(victim, LIMIT + 1)
        by_hour.append(codes.count(C.SIGN_PASSWORD_WRONG))
        attack.core.clock.forward(3600)

    when = [hour for hour, count in enumerate(by_hour) if count]
    assert when == [0, 1, 2, 4, 8, 16, 32, 56, 80]
    assert by_hour[0] == LIMIT + 1
    assert sum(by_hour) <= 10 * LIMIT


async def test_guesses_side_by_side_stay_within_the_floor(attack: Attack) -> None:
    """The record is reset all the time while twenty guesses come at once."""
    stop = asyncio.Event()

    async def keep_resetting() -> None:
        while not stop.is_set():
            await attack.reset()
            await asyncio.sleep(0)

    resetting = asyncio.create_task(keep_resetting())
    guesses = [attack.tried(attack.victim.signer, new_id().encode()) for _ in range(20)]
    refusals = await asyncio.gather(*guesses)
    stop.set()
    await resetting

    codes = [refusal and refusal[0] for refusal in refusals]
    assert codes.count(C.SIGN_PASSWORD_WRONG) <= 2 * LIMIT
    assert set(codes) <= {C.SIGN_PASSWORD_WRONG, C.SIGN_LOCKED, C.RATE_LIMITED}


@pytest.mark.parametrize("proof", ["own", "replayed", "of another", "broken"])
async def test_false_proofs_clear_nothing(attack: Attack, proof: str) -> None:
    """Made with another key, taken from an earlier row, of another person, or none."""
    victim, core = attack.victim.signer, attack.core
    await attack.guesses(victim, LIMIT)
    await unlocked_again(attack, victim)
    assert await attack.tried(victim, PASSWORD) is None
    replayed = (await attack.victim.secret()).cleared
    core.clock.forward(60)
    salt, at = (await attack.victim.secret()).salt, core.now + timedelta(hours=1)
    forged = {
        "own": CountClearings(LookupKey(KeyRing.of(b"x" * 32))).prove(
            victim.person, salt, at
        ),
        "replayed": replayed,
        "of another": CLEARINGS.prove(attack.attacker.person, salt, at),
        "broken": "2026-01-01|00|",
    }[proof]
    codes = []
    for _ in range(4 * LIMIT):
        await attack.sql(update(signing_secret).values(cleared=forged))
        codes += await attack.guesses(victim, 1)

    assert codes.count(C.SIGN_PASSWORD_WRONG) == 2 * LIMIT


async def unlocked_again(attack: Attack, signer: Signer) -> None:
    """The lock stands, and an officer lifts it."""
    await attack.sql(update(signing_secret).values(locked_at=attack.core.now))
    await unlock(attack, signer)


async def test_true_proofs_without_end_are_bounded_by_the_day(attack: Attack) -> None:
    """Whoever has the lookup key too gets ten limits a day, and no more."""
    victim, codes = attack.victim.signer, []
    salt = (await attack.victim.secret()).salt
    for _ in range(12 * LIMIT):
        attack.core.clock.forward(20)
        proof = CLEARINGS.prove(victim.person, salt, attack.core.now)
        await attack.sql(update(signing_secret).values(cleared=proof))
        codes += await attack.guesses(victim, 1)
    attack.core.clock.forward(86_400)
    later = await attack.guesses(victim, 1)

    assert codes.count(C.SIGN_PASSWORD_WRONG) == 10 * LIMIT
    assert codes[10 * LIMIT :] == [C.SIGN_LOCKED] * 2 * LIMIT
    assert later == [C.SIGN_PASSWORD_WRONG]


# -- who is honest --------------------------------------------------------------------


async def test_right_password_at_another_front_clears_this_one(
    attack: Attack,
) -> None:
    """Two fronts, and one who is wrong at one and right at the other, all day long."""
    victim = attack.victim.signer
    other = password_attempts(
        attack.core.other_store(),
        attack.victim.passwords,
        attack.core.clock,
        SigningSettings(wrong_passwords=LIMIT),
    )
    for _ in range(4):
        for _ in range(LIMIT - 1):
            refusal = await attack.tried(victim, new_id().encode())
            assert refusal is not None
            assert refusal[0] is C.SIGN_PASSWORD_WRONG
        assert await attack.tried(victim, PASSWORD, other) is None
        attack.core.clock.forward(60)

    assert await attack.tried(victim, PASSWORD) is None


async def test_each_unlocking_by_an_officer_gives_all_tries_back(
    attack: Attack,
) -> None:
    """As often as an officer does it."""
    victim = attack.victim.signer
    for _ in range(4):
        left = [await attack.tried(victim, new_id().encode()) for _ in range(LIMIT)]
        assert left == [
            (C.SIGN_PASSWORD_WRONG, 2),
            (C.SIGN_PASSWORD_WRONG, 1),
            (C.SIGN_LOCKED, None),
        ]
        attack.core.clock.forward(60)
        await unlock(attack, victim)

    assert await attack.tried(victim, PASSWORD) is None


async def test_new_password_of_an_enrolment_begins_anew(attack: Attack) -> None:
    """It is tried with all tries, at a front that saw the forgotten one's."""
    victim, new = attack.victim.signer, b"otra clave de firma"
    for _ in range(3):
        for _ in range(LIMIT):
            await attack.tried(victim, new_id().encode())
        attack.core.clock.forward(60)
        made = await attack.victim.passwords.derive_new(new)
        async with attack.core.store.write() as transaction:
            people = PersonStore(transaction)
            await people.replace_signing_secret(victim.person, made.secret)
            issuing = attack.victim.issuing
            await issuing.begin_tries(transaction, victim.person, made.secret)

    left = [await attack.tried(victim, new_id().encode()) for _ in range(LIMIT - 1)]

    assert left == [(C.SIGN_PASSWORD_WRONG, 2), (C.SIGN_PASSWORD_WRONG, 1)]


async def test_version_before_lifts_a_lock_without_a_proof(attack: Attack) -> None:
    """A console of the version before is believed: it has no proof to give."""
    victim = attack.victim.signer
    for _ in range(LIMIT):
        await attack.tried(victim, new_id().encode())
    async with attack.core.store.write() as transaction:
        await PersonStore(transaction).set_counted(victim.person, 0, None)

    assert await attack.tried(victim, PASSWORD) is None


async def test_same_wrong_password_is_one_guess(attack: Attack) -> None:
    """A program that repeats a wrong one is not refused by this process for it."""
    victim = attack.victim.signer
    for _ in range(4 * LIMIT):
        await attack.reset()
        refusal = await attack.tried(victim, b"siempre la misma")
        assert refusal is not None
        assert refusal[0] is C.SIGN_PASSWORD_WRONG


async def test_damaged_key_beside_a_sound_one_does_no_harm(attack: Attack) -> None:
    """One key that opens is enough for the password to be right."""
    victim = attack.victim
    name = CredentialId(new_id())
    await add_key(victim.core, victim.signer, name, b"?" * 32)
    # The new one took the place of the sound one, which is given back beside it.
    await attack.sql(
        update(credential)
        .where(credential.c.person == victim.signer.person)
        .values(state=CredentialState.ACTIVE.value)
    )

    assert await attack.tried(victim.signer, PASSWORD) is None
