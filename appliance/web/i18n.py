"""The language of an answer, and its sentences."""

from functools import partial

from quart import request

from appliance.domain.errors import ApplianceError
from appliance.system.catalogues import (
    DEFAULT,
    LANGUAGES,
    SHARED,
    catalogue,
    load,
    translate,
)

__all__ = [
    "DEFAULT",
    "LANGUAGES",
    "SHARED",
    "catalogue",
    "load",
    "requested",
    "said",
    "translate",
]


def said(error: ApplianceError, lang: str) -> str:
    """Say an error to people: its sentence, with states in words.

    Args:
        error: what happened.
        lang: `es` or `en`.
    """
    return error.told(translate(lang, error.sentence), partial(translate, lang))


def requested() -> str:
    """The language that the present request asks for (Accept-Language).

    The first wish whose language we speak, whatever its region: who asks for
    `es-AR, en;q=0.5` reads Spanish (RFC 4647, 3.4).
    """
    for wish, quality in request.accept_languages:
        spoken = wish.partition("-")[0].lower()
        if quality > 0 and spoken in LANGUAGES:
            return spoken
    return DEFAULT
