"""Which CAs a signing worker believes, and that it checks nothing twice."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.domain.errors import ApplianceError, CredentialRefusedError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Credential, Person
from appliance.domain.vocab import PersonState, StatementFault
from appliance.keys.activation_format import PinnedFormat
from appliance.pki.validation.credential_statement import (
    Authorities,
    Statement,
    read_statement,
)
from appliance.pki.validation.pinned_anchors import PinnedAnchors, to_pem
from tests.support.factories.fakes import NOON
from tests.support.installation.record import new_credential
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, named, spki_of
from worker.signing import credential_statement
from worker.signing.credential_statement import CredentialStatements

CUIL = "20267565393"
OURS, OUTSIDE = OutsideCa(NOON, "La nuestra"), OutsideCa(NOON, "De afuera")
ANA = Person(PersonId("p"), CUIL, "Ana Pérez", PersonState.ACTIVE, "es")
ISSUER = StatementFault.ISSUER


def certified(ca: OutsideCa) -> Credential:
    """A credential that a CA certified."""
    spki = spki_of(ec_key())
    made = ca.certify(spki, CUIL, subject=named("Ana Pérez", f"CUIL {CUIL}"))
    chain = (der(ca.issuing),)
    return new_credential(ANA.id, spki=spki, certificate=der(made), chain=chain)


class Host:
    """Files of a signing host, and roots of its record."""

    def __init__(self, folder: Path) -> None:
        self.pins = folder / "outside-anchors.pem"
        self.format = folder / "activation-format"
        self.roots: list[bytes] = []
        self.asked = 0
        self.statements = CredentialStatements(
            (der(OURS.root), der(OURS.issuing)),
            PinnedAnchors(self.pins),
            PinnedFormat(self.format),
            self._recorded,
        )

    async def _recorded(self) -> Sequence[bytes]:
        self.asked += 1
        return self.roots

    async def fault(self, credential: Credential) -> StatementFault | None:
        """Why the host refuses a credential; None where it does not."""
        try:
            await self.statements.demand(ANA, credential)
        except CredentialRefusedError as exc:
            return exc.fault
        return None


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """One where nothing is pinned."""
    return Host(tmp_path)


async def test_own_ca_needs_neither_pin_nor_record(host: Host) -> None:
    """Whatever format counts; the record is not asked."""
    for text in (None, "1\n", "2\n"):
        if text is not None:
            host.format.write_text(text)
        assert await host.fault(certified(OURS)) is None
    assert host.asked == 0


async def test_root_of_the_record_counts_until_the_upgrade_is_closed(
    host: Host,
) -> None:
    """Chains of before sign on; from then on a pin alone lets them."""
    credential = certified(OUTSIDE)
    assert await host.fault(credential) is ISSUER
    host.roots.append(der(OUTSIDE.root))
    assert await host.fault(credential) is None
    host.format.write_text("2\n")
    assert await host.fault(credential) is ISSUER
    host.pins.write_bytes(to_pem([der(OUTSIDE.root)]))
    assert await host.fault(credential) is None
    host.pins.write_bytes(to_pem([der(OURS.root)]))
    assert await host.fault(credential) is ISSUER


async def test_pin_counts_before_the_upgrade_is_closed(host: Host) -> None:
    """An operator may pin first."""
    host.pins.write_bytes(to_pem([der(OUTSIDE.root)]))
    assert await host.fault(certified(OUTSIDE)) is None


async def test_pins_that_cannot_be_read_refuse_nobody(host: Host) -> None:
    """What could not be checked is no refusal; our own certificates need no pin."""
    host.pins.mkdir()
    assert await host.fault(certified(OURS)) is None
    with pytest.raises(ApplianceError) as caught:
        await host.statements.demand(ANA, certified(OUTSIDE))
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


async def test_dates_are_looked_at_each_time(host: Host) -> None:
    """A result that is kept says nothing of the time."""
    credential = certified(OURS)
    found = await host.statements.demand(ANA, credential, NOON)
    with pytest.raises(CredentialRefusedError) as caught:
        await host.statements.demand(ANA, credential, found.not_after)
    assert caught.value.fault is StatementFault.DATES
    await host.statements.demand(ANA, credential)


CHANGES: dict[str, Callable[[Person, Credential], tuple[Person, Credential]]] = {
    "name": lambda p, c: (replace(p, name="Otra"), c),
    "number": lambda p, c: (replace(p, cuil="20055361682"), c),
    "key": lambda p, c: (p, replace(c, spki=b"another")),
    "certificate": lambda p, c: (p, replace(c, certificate=c.certificate[:-1] + b"x")),
    "chain": lambda p, c: (p, replace(c, chain=())),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_result_is_of_the_same_rows_alone(
    host: Host, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Once for them, and again for whatever differs."""
    read: list[Credential] = []

    def counted(person: Person, credential: Credential, by: Authorities) -> Statement:
        read.append(credential)
        return real(person, credential, by)

    real = read_statement
    monkeypatch.setattr(credential_statement, "read_statement", counted)
    credential = certified(OURS)
    for _ in range(3):
        await host.statements.demand(ANA, credential)
    assert len(read) == 1

    person, altered = CHANGES[what](ANA, credential)
    for _ in range(2):
        if what == "chain":
            await host.statements.demand(person, altered)
        else:
            with pytest.raises(CredentialRefusedError):
                await host.statements.demand(person, altered)
    assert len(read) == 2


async def test_results_that_are_kept_are_bounded(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were asked for longest ago go first."""
    monkeypatch.setattr(credential_statement, "_KEPT", 2)
    one, two, three = (certified(OURS) for _ in range(3))
    for each in (one, two, one, three):
        await host.statements.demand(ANA, each)
    assert len(host.statements._results) == 2
    kept = list(host.statements._results)
    await host.statements.demand(ANA, one)
    assert set(host.statements._results) == set(kept)
