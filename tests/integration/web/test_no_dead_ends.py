"""No page of this address leaves a person without words and a next step."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from quart import Quart, g

from appliance.api import ayuda, pages
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web import i18n
from tests.support.installation.api import API, create_api
from tests.support.installation.installation import Installation

_CONTACT: Final = "Mesa de ayuda, interno 12"
_ERROR_PAGES: Final[dict[str, list[dict[str, Any]]]] = {
    "alta_error.html": [{"link": True}, {"link": False}],
    "ayuda_error.html": [{"is_withdrawal": True}, {"is_withdrawal": False}],
    "revocar_error.html": [{}],
    "error.html": [
        {"link_over": over, "programs": programs, "reference": "r-1"}
        for over, programs in ((False, False), (True, False), (False, True))
    ],
}
"""Templates that say an error, and what else each is given."""
_LINK: Final = re.compile(r'<a href="(?!\?lang=)[^"]*">[^<]+</a>')
_KEPT: Final = {"es": "tu pedido sigue como estaba", "en": "your request is as it was"}
_LOST: Final = {"es": "no quedó guardado", "en": "Nothing was filed"}
_ENDS: Final = ("alta_hecha", "alta_otra_vez", "revocar_hecha", "verificar_nada")
"""Pages at the end of a way on which something did not go as wanted."""


class _Spent:
    """The rate of an address that has asked too often."""

    def count(self, _address: str) -> None:
        """Refuse whoever asks."""
        raise ApplianceError(ErrorCode.RATE_LIMITED)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Quart]:
    """The API of an installation that names a contact."""
    made = Installation(tmp_path, **{**API, "contact": _CONTACT})
    async with made.api() as services:
        yield create_api(services)


async def shown(
    app: Quart, code: ErrorCode, template: str, lang: str, **more: Any
) -> str:
    """The main part of the page that says an error."""
    async with app.test_request_context(f"/nada?lang={lang}"):
        g.request_id, g.began = "r-1", 0.0
        response = pages.refuse(ApplianceError(code), template, **more)
        text = str(await response.get_data(as_text=True))
    return text.partition("<main")[2]


@pytest.mark.parametrize("template", list(_ERROR_PAGES))
async def test_each_error_has_words_a_link_and_whom_to_ask(
    app: Quart, template: str
) -> None:
    """Every code, in both languages, whatever page says it."""
    for code in ErrorCode:
        for more in _ERROR_PAGES[template]:
            said = {
                lang: await shown(app, code, template, lang, **more)
                for lang in i18n.LANGUAGES
            }
            assert said["es"] != said["en"], code
            for lang, main in said.items():
                assert re.search(r"<h1>[^<]+</h1>", main), (code, lang)
                assert _LINK.search(main), (code, lang, "no link")
                assert _CONTACT in main, (code, lang, "nobody to ask")


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
async def test_failed_withdrawal_says_that_the_request_stays(
    app: Quart, lang: str
) -> None:
    """Not that nothing was filed: whoever opens the link wants a request to go."""
    app.extensions[ayuda.RATE] = _Spent()
    client, headers = app.test_client(), {"Accept-Language": lang}
    form = {"motivo": "otro", "cuil": "20-05536168-2", "correo": "ana@demo.example"}
    said = {}
    for path in ("/ayuda/retirar/7", "/ayuda"):
        answer = await client.post(path, form=form, headers=headers)
        assert answer.status_code == 429
        said[path] = await answer.get_data(as_text=True)

    for path, own, other in (
        ("/ayuda/retirar/7", _KEPT[lang], _LOST[lang]),
        ("/ayuda", _LOST[lang], _KEPT[lang]),
    ):
        assert own in said[path]
        assert other not in said[path]


def test_each_page_that_ends_a_way_names_whom_to_ask() -> None:
    """Errors among them: a template that refuses something says who can help."""
    folder = Path(pages.__file__).parent / "templates"
    refusing = {path.name for path in folder.glob("*error.html")} - {"docs_errors.html"}
    assert refusing == set(_ERROR_PAGES)
    for name in (*_ENDS, *(page.removesuffix(".html") for page in refusing)):
        assert "whom()" in (folder / f"{name}.html").read_text("utf-8"), name


@pytest.mark.parametrize(
    ("contact", "href"),
    [
        ("firma@example.org", "mailto:firma@example.org"),
        ("https://example.org/ayuda", "https://example.org/ayuda"),
        ("javascript:alert(1)", None),
        ("Mesa de ayuda, 0800 555 1234", None),
        ("", None),
    ],
)
def test_contact_is_a_link_where_it_can_be_one(
    tmp_path: Path, contact: str, href: str | None
) -> None:
    """A mail address or a page; nothing else is ever followed."""
    settings = Installation(tmp_path, contact=contact).settings({})

    assert settings.contact_href == href
