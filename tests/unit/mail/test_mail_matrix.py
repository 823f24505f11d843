"""Both templates of mails, for each kind of mail, in every state of its content."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

import appliance.mail
from appliance.domain.mail.mails import MailKind
from appliance.domain.vocab import Environment, RequestState
from appliance.mail.contents import Enrolment, MailContent
from appliance.mail.message import mail_parts
from appliance.settings import MailSettings, Settings
from tests.support.faces.page_matrix import PageMatrix, Way, template_files
from tests.support.installation.settings import settings_in

_TEMPLATES: Final = Path(appliance.mail.__file__).parent / "templates"
_AT: Final = datetime(2026, 11, 27, 14, 0, tzinfo=UTC)
_OVER: Final = (RequestState.REJECTED, RequestState.EXPIRED)
_CONTENTS: Final[dict[str, dict[str, Any]]] = {
    "bare": {"documents": ("a.pdf",)},
    "full": {
        "documents": ("a.pdf",),
        "on_behalf": True,
        "is_alone": True,
        "enrolment": Enrolment.INVITED,
        "enrol_until": _AT,
        "expires": _AT,
        "message": "Hola.\nGracias.",
        "url": "https://acme.example/f",
        "pdf": b"%PDF",
        "logo": b"\x89PNG\r\n\x1a\n",
        "contact": "firma@demo.example",
        "revocation_url": "https://firma.example/revocar",
        "help_url": "https://firma.example/ayuda",
    },
    "batch": {
        "documents": tuple(f"{n}.pdf" for n in range(12)),
        "unsigned": tuple((f"{state}.pdf", state) for state in _OVER),
        "is_batch": True,
        "enrolment": Enrolment.TO_BE_INVITED,
    },
}
"""Fields besides those that every mail has."""
_ENVIRONMENTS: Final[dict[str, dict[str, Any]]] = {
    "trial": {"trial": True},
    "preprod": {},
    "prod": {"environment": Environment.PROD},
}
"""No mail is made while mail is off."""


@pytest.fixture(params=list(_ENVIRONMENTS))
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """An installation with mail on."""
    mail = MailSettings(host="mail.example", from_address="firma@rubrica.example")
    changes = {"mail": mail, **_ENVIRONMENTS[request.param]}
    return settings_in(tmp_path).model_copy(update=changes)


def test_each_mail_in_each_state(settings: Settings) -> None:
    """No template lacks a value, and none is left out."""
    matrix = PageMatrix(f"mail {settings.environment} {settings.trial}")
    with matrix.watching():
        for kind, lang, state in product(MailKind, ("es", "en"), _CONTENTS):
            content = replace(
                MailContent(
                    kind, lang, "a@b.example", "Ana", "ACME", on_behalf=False, at=_AT
                ),
                **_CONTENTS[state],
            )
            parts = mail_parts(content, settings, "id-1")
            assert parts.subject in parts.html or "&" in parts.html
            assert "Ana" in parts.text
            matrix.cell(f"{kind} {lang} {state}", Way.GET, 200)

    print(matrix.table())  # noqa: T201 (for a reader of the run)
    assert matrix.templates == template_files(_TEMPLATES)
