"""Through the whole appliance on NSS softokn: a make of HSM that is not SoftHSM.

Its tokens are made by its own tool; it wraps keys in another format, and needs
the public point to unwrap keys on curves.

Source: design §4 "Wrapped"; test-parts "A second PKCS#11".
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode, WrapMethod
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import signed_pdf
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_verdicts
from tests.support.faults.fault_injection import restarted
from tests.support.hsm.nss import NssTokens
from tests.support.processes.scratch import short_folder

_KINDS: Final = {
    KeyAlgorithm.RSA_2048: rsa.RSAPublicKey,
    KeyAlgorithm.EC_P256: ec.EllipticCurvePublicKey,
}


def _hsm(tokens: NssTokens, algorithm: KeyAlgorithm) -> str:
    return (
        f'profile = "nss-softokn"\nmodule = "{tokens.shim.path}"\n'
        f'key_algorithm = "{algorithm}"'
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where tokens and appliance are, with the PIN files of both in one place."""
    with short_folder() as made:
        yield made


@pytest.fixture(scope="module")
def tokens(folder: Path) -> NssTokens:
    """Two tokens, made before the appliance is set up."""
    return NssTokens(folder)


@pytest.fixture(scope="module")
def on_nss(folder: Path, tokens: NssTokens) -> Iterator[Appliance]:
    """An appliance on those tokens."""
    hsm, environment = _hsm(tokens, KeyAlgorithm.RSA_2048), tokens.shim.environment
    with Appliance.made(folder, hsm=hsm, environment=environment) as made:
        yield made


@pytest.fixture(scope="module")
def people(on_nss: Appliance, tokens: NssTokens) -> dict[KeyAlgorithm, TestPerson]:
    """Somebody with a key of each kind."""
    found = {KeyAlgorithm.RSA_2048: on_nss.new_person("Rosa Sánchez")}
    with restarted(on_nss, hsm=_hsm(tokens, KeyAlgorithm.EC_P256)):
        found[KeyAlgorithm.EC_P256] = on_nss.new_person("Elena Curva")
    return found


@pytest.mark.parametrize("algorithm", [KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256])
def test_wrapped_keys_sign_on_nss(
    on_nss: Appliance,
    people: dict[KeyAlgorithm, TestPerson],
    algorithm: KeyAlgorithm,
) -> None:
    """A wrapped key in NSS's own format; valid for pyHanko and pdfsig."""
    person = people[algorithm]
    credential = on_nss.credential(person)
    request = on_nss.new_request(person, pdfs.one_page())
    with on_nss.client(person) as client:
        signed = signed_pdf(client, person, request)

    assert (credential.key_mode, credential.method_k) == (
        KeyMode.WRAPPED,
        WrapMethod.AES_KEY_WRAP_PAD_3394,
    )
    public = x509.load_der_x509_certificate(credential.certificate).public_key()
    assert isinstance(public, _KINDS[algorithm])
    (verdict,) = pyhanko_verdicts(signed, on_nss.roots)
    assert verdict.good
    (said,) = pdfsig(signed)
    assert said.valid


def test_ledger_is_clean_on_nss(on_nss: Appliance) -> None:
    """Record, files and audit agree, as on the other make."""
    assert read_ledger(on_nss).faults() == []
