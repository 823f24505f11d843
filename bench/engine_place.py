"""The engine with an HSM behind it, in one process and one thread.

What the worker does to a document between the record's rows: prepare, sign in the
HSM, tell how the value was made, assemble, check. Queue, threads and rows are not
in it.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pkcs11
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key

from appliance.call_watch import CallWatch
from appliance.domain.command import SignParameters
from appliance.domain.document import PageBox
from appliance.domain.hsm import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    SignatureScheme,
    TokenRole,
    WrappedKey,
)
from appliance.domain.stamp import StampLayout, place, stamp_lines
from appliance.domain.vocab import Restriction
from hsm_config import objects, signatures
from hsm_config.provision import provision
from tests.parts.hsm import HsmInstallation
from tests.tools.pdf_samples import certify
from worker import wrapped_keys
from worker.hsm_connection import HsmConnection
from worker.hsm_tokens import make_connections
from worker.pdf import (
    FileDigests,
    SignaturePlan,
    assemble,
    check,
    method_for,
    method_of,
    prepare,
)
from worker.stamp import StampFonts, load_fonts

_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_PAGE: Final = PageBox(0, 0, 595, 842, 0)
_NAME: Final = "Ana Núñez"
_RESIDENT: Final = KeyReference(TokenRole.FIRMA, b"bench-engine")


@dataclass(frozen=True, slots=True)
class EngineKey:
    """A key of the HSM and what certifies it."""

    key: KeyReference | WrappedKey
    certificate: bytes
    chain: tuple[bytes, ...]


class EnginePlace:
    """An open HSM with an RSA-2048 key of each kind.

    Args:
        link: to the token firma, connected.
    """

    def __init__(self, link: HsmConnection) -> None:
        self._link = link
        self._fonts: StampFonts = load_fonts(_FONTS)
        spki = objects.generate(
            self.session, _RESIDENT.cka_id, "bench", KeyAlgorithm.RSA_2048
        )
        self.resident = _certified(_RESIDENT, spki)
        wrapped = wrapped_keys.generate(link, KeyAlgorithm.RSA_2048)
        self.wrapped = _certified(wrapped, wrapped.spki)

    @property
    def session(self) -> pkcs11.Session:
        """The binding's own session of the token."""
        return self._link.session(TokenRole.FIRMA)

    def raw_sign(self) -> None:
        """One `C_Sign` by the resident key, and nothing else."""
        self._sign(self.resident, bytes(32))

    def unwrap_and_sign(self) -> None:
        """One `C_Sign` by the wrapped key: two unwrapped keys made and destroyed."""
        self._sign(self.wrapped, bytes(32))

    def sign(self, pdf: bytes, key: EngineKey, layout: StampLayout | None) -> bytes:
        """A signed document, as the worker makes and checks it."""
        plan = SignaturePlan(
            field_name="Firma-1",
            layout=layout,
            restriction=Restriction.NO_VALUE,
            signed_at=dt.datetime.now(dt.UTC),
            signer_name=_NAME,
            certificate=key.certificate,
            chain=key.chain,
            method=method_for(key.certificate),
        )
        digests = FileDigests(pdf)
        prepared = prepare(pdf, plan, self._fonts, digests)
        value = self._sign(key, prepared.digest)
        increment = assemble(
            prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            signature=value,
            method=method_of(key.certificate, prepared.signed_attributes, value),
            certificate=key.certificate,
            chain=key.chain,
        )
        check(pdf, increment, key.certificate, digests)
        return pdf + increment

    def _sign(self, key: EngineKey, digest: bytes) -> bytes:
        """Have the HSM sign, as `HsmCalls.sign` does."""

        def work(link: HsmConnection) -> bytes:
            with wrapped_keys.opened(link, key.key) as private:
                return signatures.sign(
                    private, digest, SignatureScheme.RSA_PKCS1, DigestAlgorithm.SHA256
                )

        return self._link.run(work)


def stamp() -> StampLayout:
    """The stamp of a visible signature, laid out as the worker does."""
    now = dt.datetime.now(dt.UTC)
    lines = stamp_lines(_NAME, "20267565393", now, "es")
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
    link, *_ = make_connections(
        settings.hsm, installation.profile, settings.environment, 1, CallWatch()
    )
    link.connect(3, anew=True)
    try:
        yield EnginePlace(link)
    finally:
        link.module.stop()


def _certified(key: KeyReference | WrappedKey, spki: bytes) -> EngineKey:
    public = load_der_public_key(spki)
    if not isinstance(public, rsa.RSAPublicKey):
        msg = "that is no RSA key"
        raise TypeError(msg)
    certificate, chain = certify(public)
    return EngineKey(key, certificate, chain)
