"""What is kept of a signing password, and what is the same password."""

import dataclasses
import hashlib
import hmac
import unicodedata
from typing import Any

import pytest
from argon2.low_level import Type, hash_secret_raw
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import CredentialId
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import SigningSecret
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, normalize

PEPPER = b"p" * 32
WORDS = "contraseña única"


@pytest.fixture
async def passwords() -> SigningPasswords:
    """With a pepper of its own."""
    return SigningPasswords(KeyRing.of(PEPPER), HashSlots(1))


def root_of(password: bytes, secret: SigningSecret) -> bytes:
    """The Argon2 output, written out from the design."""
    return hash_secret_raw(
        hmac.digest(PEPPER, password, "sha256"),
        secret.salt,
        time_cost=2,
        memory_cost=19_456,
        parallelism=1,
        hash_len=32,
        type=Type.ID,
    )


async def test_kept_is_the_hash_of_the_verifier(passwords: SigningPasswords) -> None:
    """SHA-256(HKDF(root, "rubrica/verifier/1")), salt, parameters, version.

    Source: design §4 "Password".
    """
    secret = (await passwords.derive_new(normalize(WORDS))).secret

    verifier = HKDF(SHA256(), 32, salt=None, info=b"rubrica/verifier/1").derive(
        root_of(normalize(WORDS), secret)
    )
    assert secret.verifier_sha256 == hashlib.sha256(verifier).hexdigest()
    assert (len(secret.salt), secret.pepper_version) == (16, 1)
    assert secret.argon2 == {"t": 2, "m": 19_456, "p": 1, "v": 19}


async def test_root_and_phc_are_never_kept(passwords: SigningPasswords) -> None:
    """Nothing stored holds the Argon2 output, the password, or a PHC string."""
    secret = (await passwords.derive_new(normalize(WORDS))).secret

    kept = repr(dataclasses.asdict(secret))
    root = root_of(normalize(WORDS), secret)
    for traitor in (root.hex(), repr(root)[2:-1], WORDS, "$argon2"):
        assert traitor not in kept


async def test_repr_shows_nothing_secret(passwords: SigningPasswords) -> None:
    """Salt and verifier stay out of logs and traces, found or stored."""
    secret = (await passwords.derive_new(normalize(WORDS))).secret
    found = await passwords.check(normalize(WORDS), secret)

    assert secret.verifier_sha256 not in repr(secret)
    assert repr(secret.salt) not in repr(secret)
    assert found.verifier_sha256 not in repr(found)


async def test_password_right_in_either_normal_form(
    passwords: SigningPasswords,
) -> None:
    """Composed or decomposed, the same letters are the same password."""
    secret = (
        await passwords.derive_new(normalize(unicodedata.normalize("NFC", WORDS)))
    ).secret

    decomposed = unicodedata.normalize("NFD", WORDS)
    found = await passwords.check(normalize(decomposed), secret)

    assert decomposed != WORDS
    assert found.right


@pytest.mark.parametrize("other", ["Contraseña única", "contrasena unica", WORDS + " "])
async def test_password_wrong_when_other(
    passwords: SigningPasswords, other: str
) -> None:
    """Case, accents and blanks count."""
    secret = (await passwords.derive_new(normalize(WORDS))).secret

    assert not (await passwords.check(normalize(other), secret)).right


async def test_same_password_is_kept_differently_each_time(
    passwords: SigningPasswords,
) -> None:
    """Two people with one password cannot be told by what is kept."""
    first = (await passwords.derive_new(normalize(WORDS))).secret
    second = (await passwords.derive_new(normalize(WORDS))).secret

    assert first.verifier_sha256 != second.verifier_sha256


async def test_right_password_fails_with_another_pepper(
    passwords: SigningPasswords,
) -> None:
    """The database and its backups are not enough to check a guess."""
    secret = (await passwords.derive_new(normalize(WORDS))).secret

    found = await SigningPasswords(KeyRing.of(b"q" * 32), HashSlots(1)).check(
        normalize(WORDS), secret
    )

    assert not found.right


KEYS = (CredentialId("c1"), CredentialId("c2"))


async def test_unlock_key_follows_from_root_and_credential(
    passwords: SigningPasswords,
) -> None:
    """HKDF(root, "rubrica/unlock/1" | credential), from the same Argon2.

    Source: design §4 "Password".
    """
    made = await passwords.derive_new(normalize(WORDS), KEYS)
    found = await passwords.check(normalize(WORDS), made.secret, KEYS)

    root = root_of(normalize(WORDS), made.secret)
    for key in KEYS:
        info = b"rubrica/unlock/1" + key.encode()
        unlock = HKDF(SHA256(), 32, salt=None, info=info).derive(root)
        assert made.unlock[key] == found.unlock[key] == unlock
    assert made.unlock[KEYS[0]] != made.unlock[KEYS[1]]


async def test_unlock_keys_show_nowhere(passwords: SigningPasswords) -> None:
    """Not in what is kept, nor in the repr of what is found."""
    made = await passwords.derive_new(normalize(WORDS), KEYS)
    found = await passwords.check(normalize(WORDS), made.secret, KEYS)

    shown = repr(made) + repr(found) + repr(dataclasses.asdict(made.secret))
    for unlock in made.unlock.values():
        assert unlock.hex() not in shown
        assert repr(unlock)[2:-1] not in shown


async def test_wrong_password_unlocks_nothing(passwords: SigningPasswords) -> None:
    """There are no keys to be had of it, not even wrong ones."""
    made = await passwords.derive_new(normalize(WORDS), KEYS)

    found = await passwords.check(normalize("otra palabra"), made.secret, KEYS)

    assert (found.right, found.unlock, found.renewed) == (False, {}, None)


async def test_password_of_an_older_pepper_is_derived_anew(
    passwords: SigningPasswords,
) -> None:
    """Right under the first pepper: what is kept under the second comes with it."""
    made = await passwords.derive_new(normalize(WORDS), KEYS)
    newer = SigningPasswords(KeyRing(2, {1: PEPPER, 2: b"q" * 32}), HashSlots(1))

    found = await newer.check(normalize(WORDS), made.secret, KEYS)

    assert found.right
    assert found.unlock == made.unlock
    assert found.renewed is not None
    assert found.renewed.secret.pepper_version == 2
    assert found.renewed.secret.salt != made.secret.salt
    again = await newer.check(normalize(WORDS), found.renewed.secret, KEYS)
    assert (again.right, again.renewed) == (True, None)
    assert again.unlock == found.renewed.unlock
    assert not (await newer.check(normalize("otra palabra"), made.secret)).renewed


async def test_password_of_a_lost_pepper_cannot_be_checked(
    passwords: SigningPasswords,
) -> None:
    """That is the operator's fault, and counts as no wrong password."""
    made = await passwords.derive_new(normalize(WORDS))
    newer = SigningPasswords(KeyRing(2, {2: b"q" * 32}), HashSlots(1))

    with pytest.raises(ApplianceError) as caught:
        await newer.check(normalize(WORDS), made.secret)

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


@pytest.mark.parametrize("text", ["12345678", "ñ" * 4, "x" * 1024, " " * 8])
def test_password_taken_from_8_to_1024_bytes(text: str) -> None:
    """Bytes count, not letters."""
    assert normalize(text) == text.encode()


@pytest.mark.parametrize(
    "text", ["", "1234567", "ñ" * 3, "x" * 1025, "1234567\0", "12345678\ud800"]
)
def test_password_refused_otherwise(text: str) -> None:
    """Too short, too long, with a NUL, or no text at all."""
    with pytest.raises(FieldInvalidError) as caught:
        normalize(text)

    assert caught.value.extras["field"] == "password"
    assert not text or text not in str(caught.value)


@pytest.mark.parametrize(
    "other",
    [
        {"argon2": {"t": 1, "m": 8, "p": 1, "v": 19}},
        {"argon2": {"t": 2, "m": 4_000_000, "p": 1, "v": 19}},
        {"argon2": {"t": 2**31, "m": 19_456, "p": 1, "v": 19}},
        {"argon2": {}},
        {"salt": b""},
        {"salt": b"s" * 15},
    ],
    ids=["cheap", "memory", "time", "none", "no_salt", "short_salt"],
)
async def test_derivation_of_somebody_else_is_not_run(
    passwords: SigningPasswords, other: dict[str, Any]
) -> None:
    """Whoever writes to the database has no password derived cheaply, nor dearly."""
    secret = (await passwords.derive_new(normalize(WORDS))).secret
    altered = dataclasses.replace(secret, **other)

    with pytest.raises(ApplianceError) as caught:
        await passwords.check(normalize(WORDS), altered)

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
