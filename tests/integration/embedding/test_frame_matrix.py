"""Every page of the embed role, in every configuration.

These pages have no forms: their scripts call the JSON API, which has no template.
"""

import hashlib
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import embed
from appliance.domain.appearance.details import Logo, LogoPicture
from appliance.domain.ids import RequestBatchId, RequestId, new_id
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.vocab import Environment
from appliance.integrators.logo_store import INSTALLATION, LogoStore
from embed.assets import Assets
from tests.support.faces.page_matrix import PageMatrix, Way, template_files
from tests.support.installation.frame import CODE, FRAME, Frame, open_frame
from tests.support.installation.installation import Installation

_TEMPLATES: Final = Path(embed.__file__).parent / "templates"
_CONFIGURATIONS: Final[dict[str, dict[str, Any]]] = {
    "trial": {},
    "preprod": {"trial": False},
    "prod": {"trial": False, "environment": Environment.PROD},
}
"""Settings that these pages show: no template asks for mail, TSA or administrators."""
_BROWSER: Final = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@dataclass
class FramePages:
    """The embed role, and what was seen of it."""

    frame: Frame
    matrix: PageMatrix

    async def get(self, page: str, path: str, status: int) -> None:
        """Open a page in both languages, as a browser does.

        Args:
            page: name of the page and of its state.
            path: address.
            status: expected of each answer.
        """
        for lang in ("en", "es"):
            more = "&" if "?" in path else "?"
            answer = await self.frame.client.get(
                f"{path}{more}lang={lang}", headers=_BROWSER
            )
            assert answer.status_code == status, (page, answer.status_code)
            assert answer.mimetype == "text/html"
            self.matrix.cell(f"{page} {lang}", Way.GET, answer.status_code)

    async def token(self, wanted: RequestId | RequestBatchId | None) -> str:
        """Have the backend open a session for a request, a batch, or anything."""
        services = self.frame.services.services
        integrator = await services.integrators.get(CODE)
        (key, *_) = await services.integrators.keys(CODE)
        asking = IntegratorCaller(integrator, key.id)
        return (await services.sessions.open_for(asking, wanted)).token


@pytest.fixture(params=list(_CONFIGURATIONS))
async def pages(
    request: pytest.FixtureRequest, tmp_path: Path, assets: Assets
) -> AsyncIterator[FramePages]:
    """The role in one configuration."""
    settings = Installation(tmp_path).settings(FRAME)
    changed = settings.model_copy(update=_CONFIGURATIONS[request.param])
    matrix = PageMatrix(f"frame {request.param}")
    async with open_frame(changed, assets) as frame:
        with matrix.watching():
            yield FramePages(frame, matrix)


async def test_each_page_of_each_session(pages: FramePages) -> None:
    """No page lacks a value or fails, and no template is left out."""
    frame, matrix = pages.frame, pages.matrix
    services = frame.services.services
    someone = await frame.services.add_person()
    integrator = await services.integrators.get(CODE)
    batch = RequestBatchId(new_id())
    one = await services.record.add_request(someone.id, integrator=integrator.id)
    await services.record.add_request(someone.id, integrator=integrator.id, batch=batch)
    sessions = {
        "any document": await frame.services.token(),
        "single": await pages.token(one),
        "batch": await pages.token(batch),
    }
    for kind, token in sessions.items():
        await pages.get(f"page.frame {kind}", f"/embed/?sessionToken={token}", 200)
        known = await services.sessions.page(token, None)
        reloaded = f"/embed/?s={known.session_public_id}"
        await pages.get(f"page.frame {kind} reloaded", reloaded, 200)
    pixels = bytes(range(2 * 3 * 3))
    logo = Logo(hashlib.sha256(pixels).hexdigest(), 3, 2)
    async with services.store.write() as transaction:
        picture = LogoPicture(logo, zlib.compress(pixels))
        await LogoStore(transaction).use(INSTALLATION, picture, services.clock.now())
    for kind, token in sessions.items():
        path = f"/embed/?sessionToken={token}"
        await pages.get(f"page.frame {kind} logo", path, 200)
    services.clock.forward(1800)
    for kind, token in sessions.items():
        path = f"/embed/?sessionToken={token}"
        await pages.get(f"page.frame {kind} expired", path, 401)
    await pages.get("page.frame unknown", "/embed/?s=nada", 401)
    await pages.get("page.frame by itself", "/embed/", 401)
    await pages.get("page.home", "/", 200)
    await pages.get("error", "/nada", 404)

    print(matrix.table())  # noqa: T201 (for a reader of the run)
    rules = [rule for rule in frame.app.url_map.iter_rules() if rule.methods]
    of_page = {r.endpoint for r in rules if r.endpoint.startswith("page.")}
    files = {"page.asset", "page.logo"}
    seen = {page.split()[0] for page in matrix.pages(Way.GET, 200)}
    assert seen == of_page - files
    assert matrix.templates == template_files(_TEMPLATES)
