"""What is kept of a signing password, and what is the same password."""

import dataclasses
import hashlib
import hmac
import unicodedata

import pytest
from argon2.low_level import Type, hash_secret_raw
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.domain.errors import FieldInvalidError
from appliance.domain.records.people import SigningSecret
from appliance.services.passwords import HashSlots
from appliance.services.signing_password import Peppers, SigningPasswords, normalize

PEPPER = b"p" * 32
WORDS = "contraseña única"


@pytest.fixture
async def passwords() -> SigningPasswords:
    """With a pepper of its own."""
    return SigningPasswords(Peppers.of(PEPPER), HashSlots(1))


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

    found = await SigningPasswords(Peppers.of(b"q" * 32), HashSlots(1)).check(
        normalize(WORDS), secret
    )

    assert not found.right


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
