"""Steps whose end is there already: their pages lead on, with a word about it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.ids import new_id
from appliance.domain.pki.trust_store import AnchorPurpose
from tests.integration.console.forms import (
    HERE,
    key_id,
    open_acme_console,
    sha256,
)
from tests.support.installation.console import Console
from tests.support.pki.outside_ca import OutsideCa, bundle

REMOVED = {
    "domain": (f"{HERE}/domains", "El dominio ya estaba eliminado."),
    "webhook": (f"{HERE}/webhooks", "El webhook ya se había quitado."),
    "root": ("/admin/trust", "La raíz ya estaba eliminada."),
}
"""Address of the list, and what is said there, by what is removed."""


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


async def made(console: Console, kind: str) -> str:
    """Something of a kind that can be removed; its id."""
    acme = (await console.front.integrators.get("acme")).id
    match kind:
        case "domain":
            origin = "https://app.example"
            await console.front.integrators.add_domain("operator", "acme", origin)
            (domain,) = await console.front.integrators.domains("acme")
            return domain.id
        case "webhook":
            url = "https://app.example/"
            webhook = await console.front.webhooks.create("operator", acme, url, "a")
            return webhook.endpoint.id
        case _:
            outside = OutsideCa(console.clock.now(), "a")
            anchor = await console.front.trust.add(
                "operator",
                bundle(outside.root),
                AnchorPurpose.SIGNERS,
                sha256(outside),
            )
            return anchor.id


@pytest.mark.parametrize("kind", REMOVED)
async def test_what_was_removed_leads_to_its_list(console: Console, kind: str) -> None:
    """Asked for by an old page, or sent twice: nothing is done, and all is well."""
    where, told = REMOVED[kind]
    path = f"{where}/{await made(console, kind)}/remove"
    assert (await console.post(path)).location == where
    (user,) = await console.front.console.users()
    rows = await console.rows_of(user.actor)

    for ask in (console.get, console.post):
        answer = await ask(path)
        assert (answer.status, answer.location) == (303, where)
        assert told in (await console.get(where)).text
        assert told not in (await console.get(where)).text

    assert await console.rows_of(user.actor) == rows


@pytest.mark.parametrize("kind", REMOVED)
async def test_id_that_there_never_was(console: Console, kind: str) -> None:
    """Of the form of an id, it may have been removed; any other one is absent."""
    where, _ = REMOVED[kind]

    assert (await console.get(f"{where}/{new_id()}/remove")).location == where
    assert (await console.get(f"{where}/x/remove")).status == 404


async def test_key_with_a_successor_is_not_rotated_again(console: Console) -> None:
    """Its page leads to the list, which shows the newer one."""
    path = f"{HERE}/keys/{await key_id(console)}/rotate"
    assert (await console.post(path, overlap="3600")).status == 200

    answer = await console.get(path)

    assert (answer.status, answer.location) == (303, f"{HERE}/keys")
    assert "Esa clave ya fue reemplazada" in (await console.get(f"{HERE}/keys")).text
