"""Reading the internal CA's certificates, and signing with a key in an HSM.

pyca/cryptography builds the certificate; `HsmRsaPrivateKey` hands it the
signature from wherever the key is. No private key is ever in this process.
"""

from collections.abc import Callable
from pathlib import Path
from secrets import randbits
from typing import Final, NoReturn

import pkcs11
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from appliance.domain.errors import ErrorCode, HsmRefusedError
from appliance.domain.keys.hsm_keys import SignatureScheme
from appliance.settings import Settings, SettingsError, certificate_file
from hsm_config.pkcs11.key_pairs import PublicKey
from hsm_config.pkcs11.signatures import sign

DEMO_WORDS: Final = "DEMO SIN VALIDEZ"
"""In the CN of a trial's CA, and in no other's."""


class HsmRsaPrivateKey(rsa.RSAPrivateKey):
    """An RSA private key that pyca's builders can use and that is not here.

    Args:
        public: its public key.
        sign_digest: signs a SHA-256 digest, PKCS#1 v1.5, in the HSM.
    """

    def __init__(
        self, public: rsa.RSAPublicKey, sign_digest: Callable[[bytes], bytes]
    ) -> None:
        self._public = public
        self._sign_digest = sign_digest

    @property
    def key_size(self) -> int:
        """Bits of the modulus."""
        return self._public.key_size

    def public_key(self) -> rsa.RSAPublicKey:
        """The public key."""
        return self._public

    def sign(self, data: bytes, padding_: object, algorithm: object) -> bytes:
        """Sign by RSASSA-PKCS1-v1_5 with SHA-256, and nothing else.

        Raises:
            HsmRefusedError: another padding or hash was asked for.
        """
        if not isinstance(padding_, padding.PKCS1v15) or not isinstance(
            algorithm, hashes.SHA256
        ):
            msg = "certificates are signed by PKCS#1 v1.5 with SHA-256 alone"
            raise HsmRefusedError(msg, ErrorCode.INTERNAL)
        digest = hashes.Hash(hashes.SHA256())
        digest.update(data)
        return self._sign_digest(digest.finalize())

    def decrypt(self, ciphertext: bytes, padding: object) -> NoReturn:  # noqa: ARG002 (the parent's form)
        """Refuse: the key can only sign.

        Raises:
            HsmRefusedError: always.
        """
        self._refuse()

    def private_numbers(self) -> NoReturn:
        """Refuse: the key does not leave the HSM.

        Raises:
            HsmRefusedError: always.
        """
        self._refuse()

    def private_bytes(self, *_form: object) -> NoReturn:
        """Refuse: the key does not leave the HSM.

        Raises:
            HsmRefusedError: always.
        """
        self._refuse()

    def __copy__(self) -> "HsmRsaPrivateKey":
        return HsmRsaPrivateKey(self._public, self._sign_digest)

    def __deepcopy__(self, memo: dict[int, object]) -> "HsmRsaPrivateKey":
        return self.__copy__()

    @staticmethod
    def _refuse() -> NoReturn:
        msg = "a key in the HSM signs; it is neither read nor used otherwise"
        raise HsmRefusedError(msg, ErrorCode.INTERNAL)


def private_key_of(public: PublicKey, private: pkcs11.PrivateKey) -> HsmRsaPrivateKey:
    """A key in the HSM, for pyca's builders.

    Args:
        public: its public half.
        private: its private half.

    Raises:
        HsmRefusedError: it is no RSA key.
    """
    if not isinstance(public, rsa.RSAPublicKey):
        msg = "certificates are signed by RSA keys alone"
        raise HsmRefusedError(msg)
    return HsmRsaPrivateKey(
        public, lambda digest: sign(private, digest, SignatureScheme.RSA_PKCS1)
    )


def read_root(settings: Settings) -> x509.Certificate:
    """Read the root's certificate, which verifiers trust.

    Raises:
        HsmRefusedError: it is missing, cannot be read, or is no certificate.
    """
    return read_certificate(settings.root_file)


def read_ca(settings: Settings) -> x509.Certificate:
    """Read the certificate of the CA that issues.

    Raises:
        HsmRefusedError: it is missing, cannot be read, or is no certificate.
    """
    return read_certificate(settings.ca_file)


def read_certificate(path: Path) -> x509.Certificate:
    """Read a certificate.

    Args:
        path: of a PEM file.

    Raises:
        HsmRefusedError: it is missing, cannot be read, or is no certificate.
    """
    try:
        return certificate_file.read_certificate(path)
    except SettingsError as exc:
        raise HsmRefusedError(str(exc)) from exc


def is_demo(certificate: x509.Certificate) -> bool:
    """Tell whether a CA certifies nothing real, by its CN."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return any(DEMO_WORDS in str(name.value) for name in names)


def key_identifier(certificate: x509.Certificate) -> str:
    """SHA-1 of a certificate's public key in hex: how records name a CA.

    Source: RFC 5280, 4.2.1.2 (1).
    """
    key = x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    return key.digest.hex()


def key_usage(
    *,
    digital_signature: bool = False,
    content_commitment: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    """The keyUsage extension with the named bits set."""
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=content_commitment,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def new_serial() -> int:
    """A random serial number of 128 bits, positive. Source: RFC 5280, 4.1.2.2."""
    return randbits(128) or 1
