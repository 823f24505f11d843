"""People of the installation, their names and tax numbers.

Source: facts "Argentina" (CUIL).
"""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.errors import (
    CheckDigitError,
    FieldInvalidError,
)
from appliance.domain.ids import CredentialId, IntegratorId, PersonId
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode, WrapMethod
from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.text.certificate_names import is_comparable
from appliance.domain.text.unicode_nfc import is_line, nfc
from appliance.domain.vocab import CredentialState, PersonState, VouchedBy

_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_DIGITS: Final = 11
_PERSON_TYPES = frozenset({"20", "23", "24", "27"})
_CUIL = re.compile(r"(\d{2})-?(\d{8})-?(\d)", re.ASCII)
COMPARABLE: Final = (
    "letters and signs that certificates know, all from left to right"
    " or all from right to left"
)
"""The values that a name's field allows, as an answer tells them."""
_SEPARATORS: Final = re.compile(r"[\s.\u00ad\u2010-\u2015\u2212-]+")
"""What people write between the digits of a number, hyphens of all kinds included."""
_SERIAL_NUMBER = re.compile(r"CUIL ?([0-9]{11})", re.ASCII)


def parse_cuil(text: str, field: str = "cuil") -> str:
    """Read a person's CUIL, with or without dashes.

    Args:
        text: `XX-XXXXXXXX-X` or eleven digits; blanks around do not count.
        field: the name that an error gives to it.

    Returns:
        The eleven digits.

    Raises:
        FieldInvalidError: wrong form, or not a person's type.
        CheckDigitError: wrong check digit (a remainder of 1 has none).

    Source: facts "Argentina".
    """
    match = _CUIL.fullmatch(text.strip(" "))
    if match is None or match[1] not in _PERSON_TYPES:
        raise FieldInvalidError(field, "XX-XXXXXXXX-X")
    digits = match[1] + match[2]
    if match[3] != _check_digit(digits):
        raise CheckDigitError(field, "XX-XXXXXXXX-X")
    return digits + match[3]


def bare_number(text: str) -> str:
    """A number without what people write between its digits: blanks, dots, hyphens."""
    return _SEPARATORS.sub("", text)


def typed_cuil(text: str, field: str = "cuil") -> str:
    """Read a CUIL as a person types it: blanks, dots and hyphens do not count.

    Args:
        text: from a form, a search or a command line; `parse_cuil` reads the wire.
        field: the name that an error gives to it.

    Returns:
        The eleven digits.

    Raises:
        FieldInvalidError: as of `parse_cuil`.
    """
    return parse_cuil(bare_number(text), field)


def typed_cuils(text: str, field: str) -> tuple[str, ...]:
    """Read several CUILs as a person types them, between commas, blanks or lines.

    Args:
        text: each as `typed_cuil` takes it.
        field: the name that an error gives to them.

    Returns:
        The eleven digits of each, in their order.

    Raises:
        FieldInvalidError: one of them is none.
    """
    parts = [bare_number(part) for part in re.split("[,;\n]", text)]
    # Blanks separate CUILs and stand within them: what counts are eleven digits each.
    return tuple(
        parse_cuil(part[at : at + _DIGITS], field)
        for part in parts
        for at in range(0, len(part), _DIGITS)
    )


def cuils_of(dni: str) -> tuple[str, ...]:
    """Every CUIL that somebody with a DNI may have.

    Args:
        dni: eight digits; any other text has none.

    Returns:
        Eleven digits each, four of them at most.
    """
    if re.fullmatch(r"\d{8}", dni, re.ASCII) is None:
        return ()
    numbers = [kind + dni for kind in sorted(_PERSON_TYPES)]
    return tuple(n + digit for n in numbers if (digit := _check_digit(n)))


def _check_digit(digits: str) -> str:
    """The last digit of a CUIL, after its first ten; empty where there is none."""
    total = sum(w * int(d) for w, d in zip(_WEIGHTS, digits, strict=True))
    remainder = total % 11
    return "" if remainder == 1 else str((11 - remainder) % 11)


def cuil_of(serial_number: str) -> str | None:
    """The CUIL that a certificate's subject tells, eleven digits; None: it tells none.

    Args:
        serial_number: its attribute of that name, `CUIL XXXXXXXXXXX`.
    """
    match = _SERIAL_NUMBER.fullmatch(serial_number.strip())
    return None if match is None else match[1]


def format_cuil(cuil: str) -> str:
    """Eleven digits as people write them, `XX-XXXXXXXX-X`."""
    return f"{cuil[:2]}-{cuil[2:10]}-{cuil[10:]}"


def certificate_name(typed: str, field: str, most: int, before: str = "") -> str:
    """A name as a certificate is to have it: in NFC, with single spaces.

    Args:
        typed: by whoever names somebody.
        field: its wire name, for the refusal.
        most: bytes that it may have in UTF-8, without `before`.
        before: text that the certificate has before it.

    Raises:
        FieldInvalidError: it is empty, too long, of more than one line, not printable,
            without a letter, or of what verifiers cannot compare.
    """
    line = (nfc(typed, most) or "").strip()
    name = " ".join(line.split())
    sound = is_line(line) and name.isprintable() and any(map(str.isalpha, name))
    if not sound or len(name.encode()) > most:
        phrase = f"1 to {most} printable bytes, of which a letter"
        raise FieldInvalidError(field, phrase)
    if not is_comparable(before + name):
        raise FieldInvalidError(field, COMPARABLE)
    return before + name


@dataclass(frozen=True, slots=True)
class Person:
    """A natural person who signs; belongs to the installation."""

    id: PersonId
    cuil: str
    """Eleven digits."""
    name: str
    state: PersonState
    locale: str
    """`es` or `en`."""
    signed_out: datetime | None = None
    """What they had proven until then counts no more."""
    is_test: bool = False
    """Made up by an integrator's backend, which alone sees them."""

    def may_go_on(self, proven: datetime | None) -> bool:
        """Whether they may use what they once proved who they are for.

        Args:
            proven: when they did; None for one who has still to do it.
        """
        return self.state is PersonState.ACTIVE and (
            proven is None or self.signed_out is None or proven > self.signed_out
        )


def credential_aad(
    installation: str,
    person: PersonId,
    credential: CredentialId,
    key_version: int,
    spki: bytes,
) -> bytes:
    """What `outer` of a credential is bound to.

    Args:
        installation: the setting of that name.
        person: whose it is.
        credential: which.
        key_version: of the credential's key, from 1.
        spki: its public key, DER.

    Source: design §4 "Wrapped".
    """
    return canonical_json(
        {
            "installation": installation,
            "person": person,
            "credential": credential,
            "keyVersion": key_version,
            "spkiSha256": hashlib.sha256(spki).hexdigest(),
        }
    )


@dataclass(frozen=True, slots=True)
class Credential:
    """A person's key and certificate.

    `outer` opens with its owner's password alone. It holds the wrapped private
    key; for a resident key it holds nothing but proof that the owner is there.
    """

    id: CredentialId
    person: PersonId
    key_mode: KeyMode
    algorithm: KeyAlgorithm
    key_version: int
    """From 1."""
    spki: bytes
    """SubjectPublicKeyInfo, DER."""
    outer: bytes = field(repr=False)
    """Nonce, ciphertext and tag of AES-256-GCM under the unlock key."""
    master: int | None
    """Version of the master key that wraps `blob_w`; None of a resident key."""
    blob_w: bytes | None = field(repr=False)
    method_w: WrapMethod | None
    method_k: WrapMethod | None
    """How what is in `outer` was wrapped."""
    key_token: str
    """Label of the token that holds the key, or whose master key wraps it."""
    cka_id: bytes | None
    """CKA_ID of a resident key pair on that token."""
    certificate: bytes
    """DER."""
    chain: tuple[bytes, ...]
    """DER, issuer first, root last."""
    not_before: datetime
    not_after: datetime
    vouched_by: VouchedBy
    state: CredentialState

    def usable_at(self, at: datetime) -> bool:
        """Whether it may sign at a time: in force, and within its dates."""
        return (
            self.state is CredentialState.ACTIVE
            and self.not_before <= at < self.not_after
        )

    def aad(self, installation: str) -> bytes:
        """What `outer` is bound to.

        Args:
            installation: the setting of that name.
        """
        return credential_aad(
            installation, self.person, self.id, self.key_version, self.spki
        )


@dataclass(frozen=True, slots=True)
class LockedKey:
    """`outer` of a credential, which the right password of its person opens."""

    id: CredentialId
    outer: bytes = field(repr=False)
    aad: bytes = field(repr=False)
    """As `credential_aad` gives it, by the person who types the password."""


@dataclass(frozen=True, slots=True)
class Integrator:
    """Who sends documents to be signed."""

    id: IntegratorId
    code: str
    name: str


@dataclass(frozen=True, slots=True)
class NewPerson:
    """A person to be recorded, with what proves who they are at sign-in."""

    person: Person
    email_sealed: bytes = field(repr=False)
    email_index: str = field(repr=False)
    vouched_by: VouchedBy
    login_phc: str = field(repr=False)
    totp_sealed: bytes = field(repr=False)
    signing: "SigningSecret"


@dataclass(frozen=True, slots=True)
class InvitedPerson:
    """A person to be recorded without secrets, who will choose them."""

    person: Person
    email_sealed: bytes = field(repr=False)
    email_index: str = field(repr=False)
    vouched_by: VouchedBy


@dataclass(frozen=True, slots=True)
class Contact:
    """How a person is reached, and who answers for who they are."""

    email_sealed: bytes = field(repr=False)
    vouched_by: VouchedBy


@dataclass(frozen=True, slots=True)
class ChosenSecrets:
    """What is kept of the secrets that a person chose at enrolment."""

    login_phc: str = field(repr=False)
    totp_sealed: bytes = field(repr=False)
    last_step: int
    """Number of the TOTP step whose code confirmed the seed."""
    signing: "SigningSecret"


@dataclass(frozen=True, slots=True)
class SigningSecret:
    """What is kept of a signing password (design §4 "Password")."""

    salt: bytes = field(repr=False)
    """16 random bytes."""
    argon2: dict[str, int]
    """`t`, `m` (KiB), `p` and `v` of the Argon2id derivation."""
    pepper_version: int
    verifier_sha256: str = field(repr=False)
    counted: int = 0
    """Wrong passwords since the last right one."""
    locked_at: datetime | None = None
    cleared: str | None = field(repr=False, default=None)
    """Proof of when `counted` was last set to nothing (`CountClearings`)."""
