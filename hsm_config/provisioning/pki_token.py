"""The internal CA's keys on the pki token, and the certificates of two of them.

The root, the CA that issues, the OCSP responder and the timestamping authority;
the certificates of these two are made and renewed by workers. Looked at before
they are made; what looks like a loss is refused, never made anew.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pkcs11
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from pkcs11.exceptions import PKCS11Error

from appliance.domain.clock import Clock
from appliance.domain.errors import HsmRefusedError, KeyNotFoundError
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyReference
from appliance.settings import Settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.module import describe
from hsm_config.pkcs11.pin import write_new
from hsm_config.profile import HsmProfile
from hsm_config.provisioning import ca_certificates, ca_hierarchy, tsa_keys
from hsm_config.provisioning.init_report import ProvisionReport

CA_ALGORITHM: Final = KeyAlgorithm.RSA_3072
OCSP_ALGORITHM: Final = KeyAlgorithm.RSA_2048
"""Shorter: an answer lives for a day, and there are many."""


def provision(
    session: pkcs11.Session,
    settings: Settings,
    profile: HsmProfile,
    clock: Clock,
    report: ProvisionReport,
) -> None:
    """Make what is missing of the CA's keys and certificates, from the root down.

    Args:
        session: of the pki token, logged in, read-write.
        settings: the installation.
        profile: its HSM's make.
        clock: dates the certificates.
        report: told what was made and what was there.

    Raises:
        HsmRefusedError: a certificate without its key, of another key, of
            another issuer or of another kind of installation; a CA without its
            root; twins; a pair that does not sign.
        PKCS11Error: the token failed.
    """
    _refuse_lost_root(settings)

    def root_certificate() -> x509.Certificate:
        key = _signer(session, objects.ROOT_KEY)
        return ca_hierarchy.self_sign_root(key, settings, clock.now())

    def ca_certificate() -> x509.Certificate:
        return ca_hierarchy.issue_ca(
            _signer(session, objects.ROOT_KEY),
            ca_certificates.read_root(settings),
            _signer(session, objects.CA_KEY),
            settings,
            clock.now(),
        )

    maker = _Maker(session, settings, report)
    root = (objects.ROOT_KEY, objects.ROOT_LABEL, settings.root_file)
    maker.certified("root", *root, root_certificate)
    ca = (objects.CA_KEY, objects.CA_LABEL, settings.ca_file)
    maker.certified("CA", *ca, ca_certificate)
    maker.pair("OCSP", objects.OCSP_KEY, objects.OCSP_LABEL, OCSP_ALGORITHM)
    newest = max(tsa_keys.generations(session), default=tsa_keys.FIRST)
    tsa = tsa_keys.reference(newest), tsa_keys.label_of(newest)
    maker.pair("TSA", *tsa, profile.own_algorithm)
    check_certificates(settings)


def check_certificates(settings: Settings) -> None:
    """The CA hangs on the root, and both are of this kind of installation.

    Raises:
        HsmRefusedError: it is not so.
    """
    root, ca = ca_certificates.read_root(settings), ca_certificates.read_ca(settings)
    try:
        ca.verify_directly_issued_by(root)
    except (InvalidSignature, ValueError, TypeError) as exc:
        msg = f"{settings.ca_file} was not issued by {settings.root_file}"
        raise HsmRefusedError(msg) from exc
    for certificate in (root, ca):
        if ca_certificates.is_demo(certificate) is not settings.trial:
            kind = "a trial's" if not settings.trial else "not a trial's"
            msg = f"the CA is {kind}, and `trial` says otherwise; begin a new one"
            raise HsmRefusedError(msg)


def _refuse_lost_root(settings: Settings) -> None:
    """Refuse a CA whose root is missing.

    Raises:
        HsmRefusedError: it is.
    """
    if settings.ca_file.exists() and not settings.root_file.exists():
        msg = (
            f"{settings.ca_file} is there and {settings.root_file} is not: put the "
            "root's certificate back, or begin a new installation (versions before "
            "this one had a CA without a root)"
        )
        raise HsmRefusedError(msg)


def _signer(
    session: pkcs11.Session, ref: KeyReference
) -> ca_certificates.HsmRsaPrivateKey:
    return ca_certificates.private_key_of(
        objects.public_key(session, ref.cka_id),
        objects.private_key(session, ref.cka_id),
    )


class _Maker:
    """Makes pairs and certificates of one token where there are none."""

    def __init__(
        self, session: pkcs11.Session, settings: Settings, report: ProvisionReport
    ) -> None:
        self._session = session
        self._settings = settings
        self._report = report

    def certified(
        self,
        name: str,
        ref: KeyReference,
        label: str,
        path: Path,
        certify: Callable[[], x509.Certificate],
    ) -> None:
        """A pair and its certificate.

        Raises:
            HsmRefusedError: a certificate without its key or of another one.
            PKCS11Error: the token failed.
        """
        if path.exists():
            self._check(name, ref, label, path)
            return
        self.pair(name, ref, label, CA_ALGORITHM)
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_new(path, certify().public_bytes(serialization.Encoding.PEM), 0o644)
        self._report.note(f"{name} certificate {path}", made=True)

    def pair(
        self, name: str, ref: KeyReference, label: str, algorithm: KeyAlgorithm
    ) -> None:
        """A pair; half of one, which a killed run leaves, is made again.

        Raises:
            HsmRefusedError: twins, or it does not sign.
            PKCS11Error: the token failed.
        """
        objects.refuse_twins(self._session, label, ref.cka_id)
        whole = self._is_whole(name, ref)
        if not whole:
            objects.make_anew(self._session, ref.cka_id, label, algorithm)
        self._report.note(f"{name} key", made=not whole)

    def _check(self, name: str, ref: KeyReference, label: str, path: Path) -> None:
        """What is there fits together.

        Raises:
            HsmRefusedError: it does not.
        """
        objects.refuse_twins(self._session, label, ref.cka_id)
        if not self._is_whole(name, ref):
            token = self._settings.hsm.pki.label
            msg = f"{path} is there, its key is not on token {token}"
            raise HsmRefusedError(msg)
        certificate = ca_certificates.read_certificate(path)
        if certificate.public_key() != objects.public_key(self._session, ref.cka_id):
            msg = f"{path} is of another key than the token's"
            raise HsmRefusedError(msg)
        self._report.note(f"{name} key", made=False)
        self._report.note(f"{name} certificate {path}", made=False)

    def _is_whole(self, name: str, ref: KeyReference) -> bool:
        """Whether a pair is there and signs.

        A whole pair that does not sign may be a CA in trouble: it is never
        destroyed here.

        Raises:
            HsmRefusedError: it is there and does not sign.
        """
        try:
            objects.self_test(self._session, ref.cka_id)
        except KeyNotFoundError:
            return False
        except PKCS11Error as exc:
            msg = (
                f"the {name} key is there and does not sign ({describe(exc)}); only "
                "if nothing was ever certified, destroy it by hand and run this again"
            )
            raise HsmRefusedError(msg) from exc
        return True
