"""Keys that signing workers refuse are listed beforehand, on both databases."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from sqlalchemy import update

from appliance.database.tables import person as people
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.vocab import CredentialState, StatementFault
from appliance.keys.credential_store import CredentialStore
from appliance.pki import credential_faults
from appliance.pki.ca_files import read_certificate
from appliance.pki.credential_faults import CredentialFaults
from appliance.pki.validation.trust_anchors import Trust
from tests.support.installation.record import CoreFixture, new_credential
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, named, spki_of


class Scene:
    """A record, and the files of its CA."""

    def __init__(self, core: CoreFixture, folder: Path) -> None:
        self.core = core
        self.root, self.issuing = folder / "root.pem", folder / "ca.pem"
        self.ca = OutsideCa(core.now, "La nuestra")
        trust = Trust(core.store, core.clock, lambda: read_certificate(self.root))
        self.faults = CredentialFaults(
            core.store,
            trust,
            lambda: (read_certificate(self.root), read_certificate(self.issuing)),
        )

    def write(self) -> None:
        """Write the files, as `rubrica hsm init` does."""
        self.root.write_bytes(self.ca.root.public_bytes(Encoding.PEM))
        self.issuing.write_bytes(self.ca.issuing.public_bytes(Encoding.PEM))

    async def enrolled(
        self, cuil: str, **changes: object
    ) -> tuple[PersonId, CredentialId]:
        """Somebody whom the CA certified."""
        signer = await self.core.add_signer(cuil=cuil, credential=False)
        spki = spki_of(ec_key())
        subject = named("Ana Pérez", f"CUIL {cuil}")
        made = self.ca.certify(spki, cuil, subject=subject)
        values = {
            "spki": spki,
            "certificate": der(made),
            "chain": (der(self.ca.issuing),),
            **changes,
        }
        held = new_credential(signer.person, **values)
        async with self.core.store.write() as transaction:
            await CredentialStore(transaction).add(held)
        return signer.person, held.id

    async def all(self) -> dict[CredentialId, StatementFault]:
        """Every fault."""
        return {one.credential: one.fault async for one in self.faults.all()}


@pytest.fixture
def scene(core: CoreFixture, tmp_path: Path) -> Scene:
    """On each database; the CA's files are not written yet."""
    return Scene(core, tmp_path)


async def test_each_key_that_does_not_agree_is_listed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pages; keys that sign no more are not looked at."""
    monkeypatch.setattr(credential_faults, "_BATCH", 2)
    scene.write()
    _, sound = await scene.enrolled("20267565393")
    renamed, one = await scene.enrolled("20055361682")
    _, two = await scene.enrolled("20300000016", certificate=b"x")
    _, three = await scene.enrolled("20300000024", cka_id=b"rubrica-keep-alive")
    over = CredentialState.REVOKED
    await scene.enrolled("20300000032", certificate=b"x", state=over)
    async with scene.core.store.write() as transaction:
        await transaction.connection.execute(
            update(people).where(people.c.id == renamed).values(name="Otra")
        )

    found = await scene.all()

    assert found == {
        one: StatementFault.NAME,
        two: StatementFault.UNREADABLE,
        three: StatementFault.RESIDENT,
    }
    assert await scene.faults.of(renamed) == {one: StatementFault.NAME}
    assert sound not in found


async def test_without_a_ca_nothing_is_said(scene: Scene) -> None:
    """Neither that a key is refused nor that none is."""
    person, _ = await scene.enrolled("20267565393", certificate=b"x")
    assert await scene.faults.of(person) == {}
    with pytest.raises(ApplianceError) as caught:
        await scene.all()
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
