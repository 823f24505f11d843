"""The time that one call may take to look places up."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.domain.documents.inspected import TextSearch
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.preset import Anchor, WishedPreset
from appliance.domain.requests.process import NamedBy, ProcessNote
from appliance.domain.signing_command import GivenParameters
from appliance.integration.requests import creation
from appliance.integration.requests.order import NamedSigner, ProcessOrder
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.installation.installation import Installation

SCOPE = ApiKeyScope.REQUESTS_WRITE


@dataclass
class Searching(FakeInspector):
    """A sandbox that never finds a text, and never says so."""

    async def find_text(
        self, pdf: DocumentBytes, text: str, occurrence: int, page: int | None = None
    ) -> TextSearch:
        """Search for ever."""
        del pdf, text, occurrence, page
        await asyncio.Event().wait()
        raise NotImplementedError


async def test_places_are_looked_for_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the call is refused, and nothing of it is kept."""
    monkeypatch.setattr(creation, "SETTLING_S", 0.01)
    async with Installation(tmp_path).api(Searching(pages=1)) as made:
        person, _ = await made.add_person()
        await made.integrators.create("operator", "acme", "ACME S.A.")
        key = await made.integrators.create_key(
            "operator", "acme", "k", scopes=(SCOPE,)
        )
        row = await made.api_keys.demand(key.secret, SCOPE, "192.0.2.1")
        wished = WishedPreset(GivenParameters.of(), anchor=Anchor("Firma"))
        order = ProcessOrder(
            "a.pdf",
            b"%PDF a",
            (NamedSigner(NamedBy.ID, person, wished),),
            ProcessNote(row.key.id),
        )
        asking = IntegratorCaller(row.integrator, row.key.id)
        with pytest.raises(ApplianceError) as caught:
            await made.backend_orders.create(asking, order)
        assert caught.value.code is ErrorCode.OVERLOADED
        assert not list(made.settings.documents_dir.rglob("*.pdf"))
