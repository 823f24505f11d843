"""The engine with an HSM behind it, in one process and one thread.

What the worker does to a document between the record's rows: prepare, sign in the
HSM, tell how the value was made, stamp the time with the TSA's key of the same HSM,
assemble, check, add validation data, check. Queue, threads and rows are not in it,
nor is the fetching of OCSP answers and CRLs, which are at hand.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pkcs11

from appliance.domain.appearance.stamp import StampLayout, place, stamp_lines
from appliance.domain.documents.inspected import PageBox
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    SignatureScheme,
    TokenRole,
    WrappedKey,
)
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.domain.requests.levels import ValidationData
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction, SignatureLevel
from appliance.runtime.hang_watchdog import CallWatch
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_pairs import PublicKey, load_spki, spki
from hsm_config.pkcs11.objects import TSA_KEY
from hsm_config.provisioning.ca_certificates import new_serial
from hsm_config.provisioning.init import provision
from tests.support.factories.fakes import MovingClock
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.pki.long_term_pki import LongTermPki
from worker.hsm.token_sessions import TokenSessions
from worker.hsm.tokens import make_connections
from worker.pades import (
    FileDigests,
    SignaturePlan,
    Validated,
    add_dss,
    assemble,
    check,
    check_end,
    method_for,
    method_of,
    prepare,
)
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.pades.cms import signed_attributes
from worker.pki.tsp_encoding import token, token_parts, tst_info

_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_PAGE: Final = PageBox(0, 0, 595, 842, 0)
_NAME: Final = "Ana Núñez"
_SPARE_BYTES: Final = 64
"""What one token may be longer than another of the same TSA."""
_RESIDENT: Final = KeyReference(TokenRole.FIRMA, b"bench-engine")


@dataclass(frozen=True, slots=True)
class EngineKey:
    """A key of the HSM and what certifies it."""

    key: ResidentKey | WrappedKey
    certificate: bytes
    evidence: ValidationData
    """Of it and of the TSA's."""


class EnginePlace:
    """An open HSM with an RSA-2048 key of each kind.

    Args:
        tokens: both, connected.
    """

    def __init__(self, tokens: Mapping[TokenRole, TokenSessions]) -> None:
        self._tokens = tokens
        self._fonts: StampFonts = load_fonts(_FONTS)
        # A little ago, so that what it certifies is good by any clock.
        self.pki = LongTermPki(MovingClock(_now() - dt.timedelta(minutes=1)))
        self.chain = self.pki.chain[:1]
        """What a CMS carries besides the signer's certificate: the CA's."""
        self.tsa_certificate = self.pki.tsa_certificate(self._public_key(TSA_KEY))
        algorithm = KeyAlgorithm.RSA_2048
        objects.generate(self.session, _RESIDENT.cka_id, "bench", algorithm)
        public = self._public_key(_RESIDENT)
        resident = ResidentKey(_RESIDENT.cka_id, spki(public))
        self.resident = self._certified(resident, public)
        wrapped = tokens[TokenRole.FIRMA].first.generate_wrapped(algorithm)
        self.wrapped = self._certified(wrapped, load_spki(wrapped.spki))
        self._token_bytes = len(self._stamp(b"")) + _SPARE_BYTES

    def _public_key(self, key: KeyReference) -> PublicKey:
        session = self._tokens[key.token].first.session(key.token)
        return objects.public_key(session, key.cka_id)

    def _certified(self, key: ResidentKey | WrappedKey, public: PublicKey) -> EngineKey:
        certificate = self.pki.signer_certificate(public)
        evidence = self.pki.evidence(certificate).with_more(
            self.pki.tsa_evidence(self.tsa_certificate)
        )
        return EngineKey(key, certificate, evidence)

    @property
    def session(self) -> pkcs11.Session:
        """The binding's own session of the token."""
        return self._tokens[TokenRole.FIRMA].first.session(TokenRole.FIRMA)

    def raw_sign(self) -> None:
        """One `C_Sign` by the resident key, and nothing else."""
        self.sign_digest(self.resident.key, bytes(32))

    def unwrap_and_sign(self) -> None:
        """One `C_Sign` by the wrapped key: two unwrapped keys made and destroyed."""
        self.sign_digest(self.wrapped.key, bytes(32))

    def sign(
        self,
        pdf: bytes,
        key: EngineKey,
        layout: StampLayout | None = None,
        level: SignatureLevel = SignatureLevel.B_B,
    ) -> tuple[bytes, ...]:
        """A signed document, as the worker makes and checks it.

        Args:
            pdf: the document.
            key: which signs.
            layout: of the stamp, for a visible signature.
            level: up to B-LT.

        Returns:
            Its parts, as the worker hands them on to be stored.
        """
        is_stamped = level is not SignatureLevel.B_B
        plan = SignaturePlan(
            field_name="Firma-1",
            layout=layout,
            restriction=Restriction.NO_VALUE,
            signed_at=_now(),
            signer_name=_NAME,
            certificate=key.certificate,
            chain=self.chain,
            method=method_for(key.certificate),
            token_bytes=self._token_bytes if is_stamped else 0,
        )
        digests = FileDigests(pdf)
        prepared = prepare(pdf, plan, self._fonts, digests)
        value = self.sign_digest(key.key, prepared.digest)
        increment = assemble(
            prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            signature=value,
            method=method_of(key.certificate, prepared.signed_attributes, value),
            certificate=key.certificate,
            chain=self.chain,
            token=self._stamp(value) if is_stamped else None,
        )
        checked = check(pdf, increment, key.certificate, digests)
        if level is not SignatureLevel.B_LT:
            return pdf, increment
        signed = pdf + increment
        more = add_dss(signed, [Validated(checked.contents, key.evidence)])
        check_end(signed, more)
        return signed, more

    def _stamp(self, value: bytes) -> bytes:
        """A token over a signature's value, as `InternalTsa` makes it."""
        method = method_for(self.tsa_certificate)
        parts = token_parts(self.tsa_certificate, self.chain, method)
        question = TimestampQuestion(method.hash(value), method.digest)
        info = tst_info(question, new_serial(), _now(), 1)
        attributes = signed_attributes(parts, method.hash(info))
        digest = method.hash(attributes)
        made = self.sign_digest(TSA_KEY, digest, method.scheme)
        if not method.verifies(self.tsa_certificate, digest, made):
            msg = "the TSA's certificate is not of the TSA's key"
            raise RuntimeError(msg)
        return token(parts, info, attributes, made, certificates=True)

    def sign_digest(
        self,
        key: KeyReference | ResidentKey | WrappedKey,
        digest: bytes,
        scheme: SignatureScheme = SignatureScheme.RSA_PKCS1,
    ) -> bytes:
        """Have the HSM sign a SHA-256 digest, as `HsmSession.sign` does."""
        role = key.token if isinstance(key, KeyReference) else TokenRole.FIRMA
        made: list[bytes] = []
        sha256 = DigestAlgorithm.SHA256
        self._tokens[role].run(
            lambda link: link.sign_all(key, (digest,), scheme, sha256, made.append)
        )
        return made[0]


def stamp() -> StampLayout:
    """The stamp of a visible signature, laid out as the worker does."""
    lines = stamp_lines(_NAME, "20267565393", _now(), "es")
    layout = place(SignParameters(x=20, y=30), lines, [_PAGE])
    if layout is None:
        msg = "that signature is not visible"
        raise ValueError(msg)
    return layout


@contextmanager
def engine_place(folder: Path) -> Iterator[EnginePlace]:
    """Make an HSM in an empty folder, and keys on it."""
    installation = HsmInstallation(folder)
    settings = installation.settings
    provision(settings)
    firma, pki = make_connections(
        settings.hsm, installation.profile, settings.environment, 1, CallWatch()
    )
    firma.connect(3, anew=True)
    pki.connect(3, anew=False)  # by the same module
    try:
        yield EnginePlace({TokenRole.FIRMA: firma, TokenRole.PKI: pki})
    finally:
        firma.module.stop()


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
