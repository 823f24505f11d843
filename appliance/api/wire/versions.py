"""The stored values that a backend's change starts from, and their names in answers."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from appliance.api.wire import answers, representations, signers
from appliance.domain.console.edit_subjects import Subject, Values
from appliance.domain.vocab import PersonState

VERSIONED: Final[Mapping[Subject, tuple[str, ...]]] = {
    Subject.WEBHOOK: (
        "url",
        "label",
        "events",
        # Failed deliveries set it, too, and then `current` says that it is off.
        "disabled",
        "former_until",
    ),
    Subject.PROCESS: (
        "reference",
        "unique",
        "metadata",
        "language",
        "message",
        "expires",
    ),
    Subject.UPLOAD: ("name", "document"),
    Subject.SIGNER: ("state", "link"),
}
"""By subject: the values that make its `ETag`. None moves by itself while what is set
stays as it is: what a call read would else be refused as changed, and be the same."""


def current(subject: Subject, stored: Values) -> answers.Versioned:
    """Return what is stored now, by the names of answers.

    Args:
        subject: kind of what was to be changed.
        stored: values of `VERSIONED` that may be shown.
    """
    return _TOLD[subject](stored)


def yours(told: answers.Versioned, sent: Mapping[str, object]) -> dict[str, object]:
    """Return what a call wanted to store, of the members that are compared.

    Args:
        told: as `current` returned it.
        sent: the body.
    """
    return {name: sent[name] for name in told if name in sent}


def _webhook(stored: Mapping[str, Any]) -> answers.Versioned:
    return {
        "url": stored["url"],
        "nombre": stored["label"],
        "eventos": [*stored["events"]],
        "habilitado": stored["disabled"] is None,
    }


def _process(stored: Mapping[str, Any]) -> answers.Versioned:
    expires: datetime | None = stored["expires"]
    return {
        "referencia": stored["reference"],
        "referenciaUnica": stored["unique"],
        "metadatos": stored["metadata"],
        "idioma": stored["language"],
        "mensaje": stored["message"],
        "vence": representations.maybe_instant(expires),
    }


def _upload(stored: Mapping[str, Any]) -> answers.Versioned:
    return {"nombre": stored["name"]}


def _signer(stored: Mapping[str, Any]) -> answers.Versioned:
    state = stored["state"]
    return {"estado": signers.state_word(state and PersonState(state))}


_TOLD: Final[Mapping[Subject, Callable[[Values], answers.Versioned]]] = {
    Subject.WEBHOOK: _webhook,
    Subject.PROCESS: _process,
    Subject.UPLOAD: _upload,
    Subject.SIGNER: _signer,
}
