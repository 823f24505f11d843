"""Chains of certificates that are tried without their keys, in the real sandbox."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.errors import ApplianceError, CertificateUnverifiableError
from appliance.pki.validation.sample_report import demand_valid
from tests.support.pki.outside_ca import OutsideCa, der, named, rsa_key, spki_of
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

CUIL = "20055361682"
NOW = datetime.now(UTC).replace(microsecond=0)
SOUND = OutsideCa(NOW)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


def path(authority: OutsideCa, **changes: Any) -> list[bytes]:
    """A signer's certificate, its issuer and the root."""
    made = authority.certify(spki_of(rsa_key()), CUIL, **changes)
    return [der(made), der(authority.issuing), der(authority.root)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"digest": hashes.SHA384()},
        {"purposes": None},
        {"subject": named("Íñigo Ñandú-Öz", f"CUIL {CUIL}")},
        # Dates are for those who take the chain: by their clock, not the sandbox's.
        {"start": NOW + timedelta(days=900), "end": NOW + timedelta(days=1000)},
    ],
    ids=["plain", "sha384", "no purposes", "letters", "other dates"],
)
async def test_sound_chain_passes(sandbox: SandboxServer, changes: Any) -> None:
    """Whatever its keys are: RSA here, and curves above it."""
    report = await sandbox.client.try_chain(path(SOUND, **changes))

    demand_valid(report)
    assert len(report.signatures) == 1
    assert report.signatures[0].signer_serial == f"CUIL {CUIL}"


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": named("Ana \N{SLIGHTLY SMILING FACE}", f"CUIL {CUIL}")},
        {"subject": named("Ana \N{HEBREW LETTER ALEF}", f"CUIL {CUIL}")},
        {"critical": "1.2.3.4"},
        {"purposes": [ExtendedKeyUsageOID.SERVER_AUTH]},
        {"purposes": [x509.ObjectIdentifier("1.2.3.4")]},
        {"ca": True},
    ],
    ids=["emoji", "two directions", "critical", "server", "unknown purpose", "ca"],
)
async def test_chain_that_makes_no_valid_signature_is_refused(
    sandbox: SandboxServer, changes: Any
) -> None:
    """By the answers that every document of its signer would get."""
    report = await sandbox.client.try_chain(path(SOUND, **changes))

    with pytest.raises(CertificateUnverifiableError) as caught:
        demand_valid(report)
    assert caught.value.reason


async def test_name_of_an_authority_counts(sandbox: SandboxServer) -> None:
    """One that cannot be compared leads to no chain."""
    odd = OutsideCa(NOW, name="AC \N{SLIGHTLY SMILING FACE}")

    report = await sandbox.client.try_chain(path(odd))

    with pytest.raises(CertificateUnverifiableError):
        demand_valid(report)


@pytest.mark.parametrize("given", [[], [der(SOUND.root)], [b"no certificate"] * 2])
async def test_what_is_no_chain_is_refused_by_name(
    sandbox: SandboxServer, given: list[bytes]
) -> None:
    """The job ends, and the next one is served."""
    with pytest.raises(ApplianceError):
        await sandbox.client.try_chain(given)

    demand_valid(await sandbox.client.try_chain(path(SOUND)))
