"""What a person sees at the public address, and what programs go on getting."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from quart.typing import TestClientProtocol as HttpClient

from appliance.domain.vocab import VouchedBy
from tests.support.installation.api import CUIL, EMAIL, ApiServices, create_api
from tests.support.installation.installation import Installation

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "es-AR",
}
JAVA = {"Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}
"""What an old HTTP library sends without meaning it."""
CODE = "0123456789ABCDEFGHJKMNPQRS"
DOCS = "https://docs.example/rubrica"


@pytest.fixture
async def api_services(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """The core of a face whose documentation is somewhere."""
    async with Installation(tmp_path, web={"documentation_url": DOCS}).api() as made:
        yield made


@pytest.fixture
def client(api_services: ApiServices) -> HttpClient:
    """A browser's calls."""
    return create_api(api_services).test_client()


async def test_home_says_what_this_is(client: HttpClient) -> None:
    """The environment, the form for codes, and where to read on."""
    answer = await client.get("/", headers=BROWSER)
    page = await answer.get_data(as_text=True)

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    for words in ("Acá se firman documentos", "PREPROD", 'action="/verificar"', DOCS):
        assert words in page


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Accept": "application/json"},
        {"Accept": "*/*"},
        JAVA,
        BROWSER | {"Authorization": "Bearer x"},
        BROWSER | {"X-Api-Key": "x"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/verificar", "/nada"])
async def test_programs_get_problems(
    client: HttpClient, path: str, headers: dict[str, str]
) -> None:
    """Whoever is no browser gets the answer of the contract."""
    answer = await client.get(path, headers=headers)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (await answer.get_json())["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    "typed",
    [
        CODE,
        f"  {CODE.lower()} ",
        "0123 4567 89AB CDEF GHJK MNPQ RS",
        "0123-4567-89ab-cdef-ghjk-mnpq-rs",
        "O123–4567–89AB–CDEF–GHJK–MNPQ–RS",  # noqa: RUF001 (as word processors put it)
        f"http://127.0.0.1:8080/verificar/{CODE}",
    ],
)
async def test_code_may_come_as_people_copy_it(client: HttpClient, typed: str) -> None:
    """Blanks, hyphens of any kind, small letters, the letter O, the whole address."""
    answer = await client.get(
        "/verificar", query_string={"codigo": typed}, headers=BROWSER
    )

    assert answer.status_code == 303
    assert answer.headers["Location"] == f"/verificar/{CODE}"


@pytest.mark.parametrize("typed", ["", "123", CODE + "0", "<b>ñ</b>", "x" * 5000])
async def test_wrong_code_is_told_kindly(client: HttpClient, typed: str) -> None:
    """What was typed is still there, escaped, with how long a code is."""
    answer = await client.get(
        "/verificar", query_string={"codigo": typed}, headers=BROWSER
    )
    page = await answer.get_data(as_text=True)

    assert answer.status_code == 422
    assert "son 26 letras y números" in page
    assert "<b>" not in page
    assert len(page) < 8000


async def test_unknown_code_can_be_corrected(client: HttpClient) -> None:
    """The page of a code that leads nowhere has the form with it."""
    answer = await client.get(f"/verificar/{CODE}", headers=BROWSER)

    assert answer.status_code == 404
    assert f'value="{CODE}"' in await answer.get_data(as_text=True)


async def test_address_that_looks_too_often_waits(tmp_path: Path) -> None:
    """Whatever the codes; a browser is told on a page."""
    async with Installation(
        tmp_path, stamp={"looks_per_minute_address": 3}
    ).api() as api_services:
        client = create_api(api_services).test_client()
        answers = [
            await client.get(f"/verificar/{CODE[:-1]}{last}", headers=BROWSER)
            for last in "ABCD"
        ]

    assert [answer.status_code for answer in answers] == [404] * 3 + [429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert answers[-1].mimetype == "text/html"


async def test_download_link_that_is_over_is_a_page(client: HttpClient) -> None:
    """A person reads what to do; a program gets 401 as before."""
    path = f"/solicitudes/1/documento?clave={'x' * 43}"

    seen = await client.get(path, headers=BROWSER)
    called = await client.get(path)

    assert seen.status_code == called.status_code == 401
    assert "ya no abre el documento" in await seen.get_data(as_text=True)
    assert seen.headers["WWW-Authenticate"] == called.headers["WWW-Authenticate"]
    assert called.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nada", 404, "No hay nada en esta dirección"),
        ("/solicitudes", 401, "Esta dirección es para programas"),
        ("/auth/login", 405, "Referencia"),
    ],
)
async def test_errors_are_pages_for_people(
    client: HttpClient, path: str, status: int, words: str
) -> None:
    """In words, with the reference under which the log knows it."""
    answer = await client.get(path, headers=BROWSER)
    page = await answer.get_data(as_text=True)

    assert answer.status_code == status
    assert words in page
    assert answer.headers["X-Request-Id"] in page
    assert "bearer" not in page


async def test_page_speaks_the_language_of_its_link(
    api_services: ApiServices, client: HttpClient
) -> None:
    """`?lang=` is stronger than the browser's wish, and stays while one looks."""
    link = await api_services.invitations.invite(
        "console:c1", CUIL, "Ana Núñez", EMAIL, VouchedBy.OFFICER
    )
    for path in ("/", "/verificar", "/revocar", f"/alta/{link.code}"):
        answer = await client.get(f"{path}?lang=en", headers=BROWSER)
        assert '<html lang="en">' in await answer.get_data(as_text=True)
        assert answer.headers["Content-Language"] == "en"
    found = await client.get(f"/verificar?lang=en&codigo={CODE}", headers=BROWSER)
    assert found.headers["Location"] == f"/verificar/{CODE}?lang=en"


async def test_revocation_tells_what_is_missing(client: HttpClient) -> None:
    """An empty field is said to be missing, a wrong one to be wrong."""
    for cuil, pin, told in (
        ("", "", ("Falta el CUIL.", "Falta el PIN de revocación.")),
        ("1", "x" * 65, ("último dígito correcto", "12 letras y números")),
    ):
        answer = await client.post(
            "/revocar", form={"cuil": cuil, "pin": pin}, headers=BROWSER
        )
        page = await answer.get_data(as_text=True)
        assert answer.status_code == 422
        for words in told:
            assert words in page


async def test_enrolment_tells_every_fault_at_once(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Each field says its own, and nothing secret comes back."""
    link = await api_services.invitations.invite(
        "console:c1", CUIL, "Ana Núñez", EMAIL, VouchedBy.OFFICER
    )
    form = {
        "login_password": "corta77",
        "login_password_again": "otra distinta",
        "signing_password": "firma7",
        "signing_password_again": "firma8",
        "totp_code": "000",
        "opening": "",
    }

    answer = await client.post(f"/alta/{link.code}", form=form)
    page = await answer.get_data(as_text=True)

    assert answer.status_code == 422
    assert [name for name in form if f'id="{name}-error"' in page] == list(form)[:-1]
    assert not any(f'"{value}"' in page for value in form.values() if value)
