"""The REST API's sign-in, previews and documents, over real sign-in and links."""

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.domain.ids import PersonId
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState
from appliance.settings.web import INSTALLATION_HEADER
from tests.support.factories.fakes import (
    PDF,
    PNG,
    SHA256,
    SIGNED_PDF,
    SIGNED_SHA256,
    request_view,
)
from tests.support.installation.api import (
    BASE_URL,
    CUIL,
    SIGN,
    ApiServices,
    Caller,
    code,
    create_api,
)
from tests.support.installation.installation import Installation

OVER = {
    RequestState.REJECTED,
    RequestState.CANCELLED,
    RequestState.EXPIRED,
    RequestState.FAILED,
}


async def test_wrong_sign_in_told(api_services: ApiServices) -> None:
    """A wrong password and an unknown login token are 401 LOGIN_FAILED."""
    await api_services.add_person()
    client = create_api(api_services).test_client(use_cookies=False)

    login = await client.post("/auth/login", json={"usuario": CUIL, "password": "x"})
    otp = await client.post("/auth/otp", json={"loginToken": "x", "codigo": "123456"})

    assert (await code(login, 401))["code"] == "LOGIN_FAILED"
    assert (await code(otp, 401))["code"] == "LOGIN_FAILED"


async def test_rate_told_with_time_to_wait(tmp_path: Path) -> None:
    """The sixth try is a 429 with Retry-After."""
    async with Installation(
        tmp_path, auth={"login_per_minute_account": 5}
    ).api() as api_services:
        client = create_api(api_services).test_client(use_cookies=False)
        body = {"usuario": CUIL, "password": "x"}
        for _ in range(5):
            await client.post("/auth/login", json=body)

        response = await client.post("/auth/login", json=body)

    members = await code(response, 429)
    assert (members["code"], members["category"]) == ("RATE_LIMITED", "retry")
    assert response.headers["Retry-After"] == str(members["retryAfter"]) == "60"


async def test_original_downloaded_as_attachment(caller: Caller) -> None:
    """The original is a file to be saved, with its ETag."""
    response = await caller.get("/solicitudes/7/original")

    assert await response.get_data() == PDF
    assert response.headers["Content-Type"] == "application/pdf"
    assert response.headers["ETag"] == f'"{SHA256}"'
    assert response.headers["Content-Disposition"] == (
        'attachment; filename="Se_al _uno_.pdf"; '
        "filename*=UTF-8''Se%C3%B1al%20%C2%ABuno%C2%BB.pdf"
    )


STORED = {"/solicitudes/7/original": PDF, "/solicitudes/9/documento": SIGNED_PDF}
"""Stored documents, by where their signer downloads them."""


@pytest.mark.parametrize("path", STORED)
async def test_stored_document_is_read_by_ranges(caller: Caller, path: str) -> None:
    """A reader of one page needs no more; the tag says of which document it is."""
    whole = await caller.get(path)
    part = await caller.get(path, Range="bytes=2-5", If_Range=whole.headers["ETag"])

    size = len(STORED[path])
    assert (whole.status_code, part.status_code) == (200, 206)
    assert await part.get_data() == STORED[path][2:6]
    assert part.headers["Content-Range"] == f"bytes 2-5/{size}"
    assert part.headers["Content-Length"] == "4"
    for name in ("ETag", "Accept-Ranges", "Content-Type", "Content-Disposition"):
        assert part.headers[name] == whole.headers[name]


@pytest.mark.parametrize("path", STORED)
@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=2-5", "If_Range": '"of another one"'},
        {"Range": "bytes=0-0,2-2"},
        {"Range": "rows=1-2"},
    ],
)
async def test_whole_document_answers_what_is_no_range_of_it(
    caller: Caller, path: str, headers: dict[str, str]
) -> None:
    """Of another document, several, or in another unit: nothing is put together."""
    answer = await caller.get(path, **headers)

    assert answer.status_code == 200
    assert "Content-Range" not in answer.headers
    assert await answer.get_data() == STORED[path]


@pytest.mark.parametrize("path", STORED)
async def test_range_past_the_end_is_told_with_the_size(
    caller: Caller, path: str
) -> None:
    """416, and where the document ends."""
    size = len(STORED[path])
    answer = await caller.get(path, Range=f"bytes={size}-")

    told = await code(answer, 416)
    assert (told["code"], told["category"]) == ("RANGE_UNSATISFIABLE", "fix_request")
    assert str(size) in told["detail"]
    assert answer.headers["Content-Range"] == f"bytes */{size}"


async def test_preview_has_box_and_picture(
    api_services: ApiServices, caller: Caller
) -> None:
    """The preview tells the stamp's box, and shows the page."""
    response = await caller.post(
        "/solicitudes/7/vista-previa", {"page": 2, "fontSize": 9}
    )

    assert await response.get_json() == {
        "pagina": 2,
        "sello": {
            "x": 10,
            "y": 20.5,
            "ancho": 120,
            "alto": 26.4,
            "texto": ["Firmado"],
            "tamanoLetra": 12,
        },
        "firma": {
            "motivo": None,
            "lugar": None,
            "restriccion": "NO_VALUE",
            "visible": True,
            "campo": None,
            "texto": [],
        },
        "dpi": 96,
        "png": base64.b64encode(PNG).decode(),
    }
    (given,) = api_services.requests.previewed
    assert given == GivenParameters.of(page=2, font_size=9)


async def test_preview_as_picture_alone(caller: Caller) -> None:
    """Accept: image/png gives the picture."""
    response = await caller.post("/solicitudes/7/vista-previa", {}, Accept="image/png")

    assert response.headers["Content-Type"] == "image/png"
    assert await response.get_data() == PNG


async def test_preview_of_invisible_signature(caller: Caller) -> None:
    """An invisible signature has no stamp."""
    response = await caller.post("/solicitudes/7/vista-previa", {"visible": False})

    assert (await response.get_json())["sello"] is None


async def test_preview_refuses_password(caller: Caller) -> None:
    """A preview takes no password and no request."""
    response = await caller.post(
        "/solicitudes/7/vista-previa", {"password": "12345678"}
    )

    members = await code(response, 400)
    assert (members["code"], members["field"]) == ("FIELD_UNKNOWN", "password")


async def test_reject_takes_reason(api_services: ApiServices, caller: Caller) -> None:
    """The signer's reason arrives, and the new state is told."""
    response = await caller.post("/solicitudes/7/rechazar", {"motivo": " No es mío "})

    members = await response.get_json()
    assert (members["estado"], members["motivo"]) == ("rechazada", "No es mío")
    assert api_services.requests.reasons == ["No es mío"]


async def test_document_by_link_then_by_bearer(
    api_services: ApiServices, caller: Caller
) -> None:
    """A stored link never rots: after its time the signer's bearer opens it."""
    url = await _link(caller)

    by_link = await caller.client.get(url)
    api_services.clock.forward(900)
    caller.headers = await api_services.bearer(api_services.requests.views[0].person)
    ended = await caller.client.get(url)
    by_bearer = await caller.get(url)

    assert await by_link.get_data() == await by_bearer.get_data() == SIGNED_PDF
    assert (await code(ended, 401))["code"] == "TOKEN_MISSING"
    assert by_link.headers["Cache-Control"] == "no-store"
    assert by_link.headers["Content-Disposition"].startswith("attachment; ")
    assert by_link.headers["ETag"] == f'"{SIGNED_SHA256}"'


async def _link(caller: Caller) -> str:
    """A fresh link's path and query."""
    response = await caller.post("/solicitudes/firmar", {**SIGN, "solicitudId": 9})
    url: str = (await response.get_json())["documentoFirmado"]
    return url.removeprefix(BASE_URL)


async def test_link_of_one_request_opens_no_other(
    api_services: ApiServices, person: PersonId, caller: Caller
) -> None:
    """The secret of one document is none for another."""
    api_services.requests.views.append(request_view(11, person, RequestState.SIGNED))
    url = (await _link(caller)).replace("/9/", "/11/")

    response = await caller.client.get(url)

    assert (await code(response, 401))["code"] == "TOKEN_MISSING"


async def test_fresh_link_for_signer_alone(caller: Caller) -> None:
    """`Accept: application/json` gives a link, to the signer only."""
    url = await _link(caller)

    fresh = await caller.get("/solicitudes/9/documento", Accept="application/json")
    without = await caller.client.get(url, headers={"Accept": "application/json"})

    members = await fresh.get_json()
    again = await caller.client.get(members["documentoFirmado"].removeprefix(BASE_URL))
    assert await again.get_data() == SIGNED_PDF
    assert members["documentoFirmado"] != f"{BASE_URL}{url}"
    assert (await code(without, 401))["code"] == "TOKEN_MISSING"


async def test_document_is_pdf_for_usual_accept(caller: Caller) -> None:
    """What libraries send by themselves downloads the PDF."""
    response = await caller.get(
        "/solicitudes/9/documento", Accept="application/json, text/plain, */*"
    )

    assert await response.get_data() == SIGNED_PDF


@pytest.mark.parametrize(
    ("sha256", "status"),
    [
        ("{own}", 200),
        ("0" * 64, 404),
        ("1", 400),
        ("{own}&sha256={own}", 400),
    ],
    ids=["that one", "none", "no hash", "twice"],
)
async def test_download_names_a_version(
    caller: Caller, sha256: str, status: int
) -> None:
    """Of several versions the one with that hash."""
    query = sha256.format(own=SIGNED_SHA256)
    response = await caller.get(f"/solicitudes/9/documento?sha256={query}")

    assert response.status_code == status


async def test_document_not_signed_yet(caller: Caller) -> None:
    """Before signing there is no document."""
    response = await caller.get("/solicitudes/7/documento")

    assert (await code(response, 409))["code"] == "NOT_SIGNED_YET"


@pytest.mark.parametrize("state", sorted(OVER))
async def test_document_that_will_never_be(
    api_services: ApiServices, caller: Caller, state: RequestState
) -> None:
    """Nobody is told to ask again for what is over."""
    api_services.requests.views = [replace(api_services.requests.views[0], state=state)]

    answer = await code(
        await caller.get(f"/solicitudes/{api_services.requests.views[0].id}/documento"),
        409,
    )

    assert (answer["code"], answer["category"]) == ("STATE", "terminal")
    assert "retryAfter" not in answer
    assert state.value in answer["detail"]


async def test_keys_published(api_services: ApiServices, caller: Caller) -> None:
    """The key set is public and may be kept for minutes."""
    response = await caller.client.get("/.well-known/jwks.json")

    assert response.headers["Content-Type"] == "application/jwk-set+json"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert await response.get_json(force=True) == await api_services.tokens.jwks()


async def test_health_and_readiness(api_services: ApiServices, caller: Caller) -> None:
    """Alive is one thing, ready another; what is not ready is named."""
    alive = await caller.client.get("/healthz")
    ready = await caller.client.get("/readyz")
    api_services.health.checks["hsm"] = "NO_WORKER"
    unready = await caller.client.get("/readyz")

    assert (alive.status_code, ready.status_code) == (200, 200)
    assert await code(unready, 503) == {
        "status": "unready",
        "checks": {"database": "ok", "hsm": "NO_WORKER"},
    }


async def test_installation_repeats_its_own_id_alone(
    api_services: ApiServices, caller: Caller
) -> None:
    """`rubrica ready` asks by it; whoever does not know the id is not told it."""
    own = api_services.settings.folder_id
    assert own

    for asked, told in ((own, own), ("0" * 32, None), ("", None)):
        answer = await caller.client.get(
            "/readyz", headers={INSTALLATION_HEADER: asked} if asked else {}
        )
        assert answer.headers.get(INSTALLATION_HEADER) == told
        assert own not in await answer.get_data(as_text=True)
