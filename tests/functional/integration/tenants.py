"""Two tenants, what each has, and every address of the API as they may call it.

A row says what an address is about. A new address without a row fails the matrix.
"""

import itertools
import json
import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend, prepared_batch
from tests.support.documents import pdfs

ABSENT: Final = {
    "process": "01900000-0000-7000-8000-000000000000",
    "documento": "01900000-0000-7000-8000-000000000000",
    "solicitud": "9007199254740990",
    "credencial": "01900000-0000-7000-8000-000000000000",
    # Of a batch of an integrator's, and of a signer's command.
    "lote": "01900000-0000-7000-8000-000000000000",
    "command": "0" * 32,
    # Of a test signer.
    "firmante": "20-05536168-2",
    "webhook": "01900000-0000-7000-8000-000000000000",
    "delivery": "01900000-0000-7000-8000-000000000000",
}
"""Of each parameter a value that nothing has."""
_TEXTS: Final = itertools.count()


class About(Enum):
    """What an address is about, and so who may call it."""

    ANYBODY = auto()
    """Nothing of a tenant: whoever calls gets the same."""
    BACKEND = auto()
    """What an integrator has: its keys alone."""
    BACKEND_LIST = auto()
    """All that an integrator has."""
    BACKEND_CALL = auto()
    """Something new, or what keys of all integrators may ask."""
    SIGNER = auto()
    """What a person has: that person alone."""
    SIGNER_LIST = auto()
    """All that a person has."""
    SIGNER_CALL = auto()
    """What a person does to themselves."""


@dataclass(frozen=True)
class Row:
    """How an address is called."""

    about: About
    json: dict[str, Any] | None = None
    """Its body; a value that is a parameter's name in `<>` is filled in."""
    content: bytes | None = None
    renamed: str = ""
    """What its `lote` is, where that is none of an integrator's."""
    ids: str = ""
    """Of a list: the parameter that its elements' ids are of."""
    member: str = ""
    """Of a list: the member that has the id."""


_BACKEND: Final = "/api/integration"
ROWS: Final[dict[tuple[str, str], Row]] = {
    **{
        ("GET", path): Row(About.ANYBODY)
        for path in (
            "/",
            "/.well-known/jwks.json",
            "/alta/<code>",
            "/ayuda",
            "/ayuda/retirar/<code>",
            "/docs",
            "/docs/<lang>/",
            "/docs/<lang>/<name>",
            "/docs/files/<name>",
            "/docs/openapi.json",
            "/healthz",
            "/pki/ca.cer",
            "/pki/ca.crl",
            "/pki/ocsp/<path:encoded>",
            "/pki/root.cer",
            "/pki/root.crl",
            "/readyz",
            "/revocar",
            "/sdk/",
            "/sdk/<name>",
            "/sdk/<version>/<name>",
            "/static/<name>",
            "/verificar",
            "/verificar/<code>",
        )
    },
    **{
        ("POST", path): Row(About.ANYBODY)
        for path in (
            "/alta/<code>",
            "/alta/<code>/guardado",
            "/auth/login",
            "/auth/otp",
            "/ayuda",
            "/ayuda/retirar/<code>",
            "/pki/ocsp",
            "/revocar",
            "/tsa",
        )
    },
    ("GET", f"{_BACKEND}/documents"): Row(
        About.BACKEND_LIST, ids="documento", member="documentoId"
    ),
    ("POST", f"{_BACKEND}/documents"): Row(
        About.BACKEND_CALL, content=pdfs.one_page("matriz")
    ),
    ("GET", f"{_BACKEND}/documents/<documento>"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/documents/<documento>/content"): Row(About.BACKEND),
    ("DELETE", f"{_BACKEND}/documents/<documento>"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/batches"): Row(
        About.BACKEND_LIST, ids="lote", member="loteId"
    ),
    ("POST", f"{_BACKEND}/batches"): Row(
        About.BACKEND,
        json={
            "firmante": {"cuil": "<cuil>"},
            "documentos": [{"documentoId": "<documento>"}],
        },
    ),
    ("GET", f"{_BACKEND}/batches/<lote>"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/batches/<lote>/cancel"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/diagnose"): Row(About.BACKEND_CALL),
    ("GET", f"{_BACKEND}/limits"): Row(About.BACKEND_CALL),
    ("GET", f"{_BACKEND}/requests"): Row(
        About.BACKEND_LIST, ids="process", member="procesoId"
    ),
    ("POST", f"{_BACKEND}/requests"): Row(
        About.BACKEND,
        json={
            "firmantes": [{"cuil": "<cuil>"}],
            "documento": {"documentoId": "<documento>"},
        },
    ),
    ("GET", f"{_BACKEND}/requests/<process>"): Row(About.BACKEND),
    ("PATCH", f"{_BACKEND}/requests/<process>"): Row(
        About.BACKEND, json={"mensaje": "Otro"}
    ),
    ("POST", f"{_BACKEND}/requests/<process>/cancel"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/requests/<process>/remind"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/requests/<process>/document"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/requests/<process>/original"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/session/new"): Row(About.BACKEND_CALL),
    ("POST", f"{_BACKEND}/sessions"): Row(
        About.BACKEND, json={"procesoId": "<process>"}
    ),
    ("GET", f"{_BACKEND}/signers/<cuil>"): Row(About.BACKEND_CALL),
    ("PUT", f"{_BACKEND}/signers/<cuil>"): Row(
        About.BACKEND_CALL,
        json={
            "nombre": "Ana Ruiz",
            "email": "ana@example.org",
            "identidad": {
                "metodo": "DNI a la vista",
                "responsable": "Marta Gil",
                "cuando": "2026-05-20T14:00:00-03:00",
            },
        },
    ),
    ("GET", f"{_BACKEND}/test/signers"): Row(
        About.BACKEND_LIST, ids="firmante", member="cuil"
    ),
    ("POST", f"{_BACKEND}/test/signers"): Row(About.BACKEND_CALL, json={}),
    ("GET", f"{_BACKEND}/test/signers/<firmante>"): Row(About.BACKEND),
    ("DELETE", f"{_BACKEND}/test/signers/<firmante>"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/test/signers/<firmante>/otp"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/test/signers/<firmante>/mails"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/test/signers/<firmante>/sign"): Row(
        About.BACKEND, json={"procesoId": "<tested>"}
    ),
    ("POST", f"{_BACKEND}/test/signers/<firmante>/reject"): Row(
        About.BACKEND, json={"procesoId": "<tested>"}
    ),
    ("GET", f"{_BACKEND}/webhooks"): Row(
        About.BACKEND_LIST, ids="webhook", member="webhookId"
    ),
    ("POST", f"{_BACKEND}/webhooks"): Row(
        About.BACKEND_CALL, json={"url": "https://receiver.example/otro"}
    ),
    ("GET", f"{_BACKEND}/webhooks/<webhook>"): Row(About.BACKEND),
    ("PATCH", f"{_BACKEND}/webhooks/<webhook>"): Row(
        About.BACKEND, json={"nombre": "otra"}
    ),
    ("DELETE", f"{_BACKEND}/webhooks/<webhook>"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/webhooks/<webhook>/rotate"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/webhooks/<webhook>/test"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/webhooks/<webhook>/replay"): Row(
        About.BACKEND, json={"estado": "abandonada"}
    ),
    ("GET", f"{_BACKEND}/webhooks/<webhook>/deliveries"): Row(About.BACKEND),
    ("GET", f"{_BACKEND}/webhooks/<webhook>/deliveries/<delivery>"): Row(About.BACKEND),
    ("POST", f"{_BACKEND}/webhooks/<webhook>/deliveries/<delivery>/replay"): Row(
        About.BACKEND
    ),
    ("GET", "/credenciales"): Row(About.SIGNER_LIST, ids="credencial", member="id"),
    ("POST", "/credenciales/<credencial>/cadena"): Row(
        About.SIGNER, json={"cadena": "-"}
    ),
    ("GET", "/credenciales/<credencial>/certificado"): Row(About.SIGNER),
    ("POST", "/credenciales/<credencial>/csr"): Row(
        About.SIGNER, json={"password": "<password>"}
    ),
    ("POST", "/credenciales/<credencial>/revocar"): Row(
        About.SIGNER, json={"motivo": "cese_de_uso"}
    ),
    ("POST", "/credenciales/clave"): Row(About.SIGNER_CALL, json={}),
    ("POST", "/credenciales/pin-de-revocacion"): Row(
        About.SIGNER_CALL, json={"no": "such field"}
    ),
    ("GET", "/solicitudes"): Row(
        About.SIGNER_LIST, ids="solicitud", member="solicitudId"
    ),
    ("GET", "/solicitudes/<digits:solicitud>"): Row(About.SIGNER),
    # Without a link of the signer's, which needs no bearer.
    ("GET", "/solicitudes/<digits:solicitud>/documento"): Row(About.SIGNER),
    ("GET", "/solicitudes/<digits:solicitud>/original"): Row(About.SIGNER),
    ("POST", "/solicitudes/<digits:solicitud>/rechazar"): Row(
        About.SIGNER, json={"motivo": "No es mío"}
    ),
    ("POST", "/solicitudes/<digits:solicitud>/vista-previa"): Row(
        About.SIGNER, json={"visible": True}
    ),
    ("POST", "/solicitudes/firmar"): Row(
        About.SIGNER, json={"solicitudId": "<solicitud>", "password": "<password>"}
    ),
    ("POST", "/solicitudes/firmar/lote"): Row(About.SIGNER_CALL, json={}),
    # Of a command that goes on; one that ended at once is kept nowhere.
    ("GET", "/solicitudes/lotes/<lote>"): Row(About.SIGNER, renamed="command"),
}
"""By method and address as the URL map has it."""


@dataclass
class Tenant:
    """An integrator with its backend, a person of its own, and what both have."""

    appliance: Appliance
    backend: TestBackend
    person: TestPerson
    names: dict[str, str] = field(default_factory=dict)

    def fresh(self, route: tuple[str, str]) -> dict[str, str]:
        """Of what an address is about, things that nobody has done anything to."""
        wanted = f"{route[1]} {ROWS[route].json} <{ROWS[route].ids}>"
        return {
            "cuil": self.person.cuil,
            "password": self.person.signing_password,
            "code": "abcdef",
            "name": "nada.css",
            "lang": "es",
            "version": "0",
            "encoded": "MAA",
            **self.names,
            **(self._process() if re.search("process|solicitud>", wanted) else {}),
            **(self._document() if re.search("documento>|lote>", wanted) else {}),
            **(self._webhook() if "webhook>" in wanted else {}),
            **(self._test_signer() if "firmante>" in wanted else {}),
        }

    def _process(self) -> dict[str, str]:
        made = self.backend.made(pdfs.one_page(_text()), self.person)
        request = made["firmantes"][0]["solicitudId"]
        return {"process": made["procesoId"], "solicitud": str(request)}

    def _document(self) -> dict[str, str]:
        """One that was uploaded, and a batch of it."""
        uploaded = self.backend.client.post(
            f"{_BACKEND}/documents",
            content=pdfs.one_page(_text()),
            headers={"Content-Type": "application/pdf"},
        )
        document = uploaded.json()["documentoId"]
        batch = self._post(
            f"{_BACKEND}/batches",
            {
                "firmante": {"cuil": self.person.cuil},
                "documentos": [{"documentoId": document}],
            },
        )
        prepared_batch(self.backend.client, batch["loteId"])
        return {"documento": document, "lote": batch["loteId"]}

    def _webhook(self) -> dict[str, str]:
        """One, and what was sent to it; an integrator has a few at most."""
        for each in self.backend.client.get(f"{_BACKEND}/webhooks").json():
            self.backend.client.delete(f"{_BACKEND}/webhooks/{each['webhookId']}")
        made = self._post(f"{_BACKEND}/webhooks", {"url": "https://receiver.example/"})
        test = self._post(f"{_BACKEND}/webhooks/{made['webhookId']}/test", None)
        return {"webhook": made["webhookId"], "delivery": test["entregaId"]}

    def _test_signer(self) -> dict[str, str]:
        """One, and what they are asked to sign."""
        made = self._post(f"{_BACKEND}/test/signers", {})
        asked = self.backend.client.post(
            f"{_BACKEND}/requests",
            files={
                "file": ("a.pdf", pdfs.one_page(_text()), "application/pdf"),
                "options": (
                    None,
                    json.dumps({"firmantes": [{"cuil": made["cuil"]}]}),
                    "application/json",
                ),
            },
        )
        assert asked.status_code == 201, asked.text
        return {"firmante": made["cuil"], "tested": asked.json()["procesoId"]}

    def _post(self, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Make something; the answer's body."""
        answer = self.backend.client.post(path, json=body)
        assert answer.status_code < 300, answer.text
        made: dict[str, Any] = answer.json()
        return made


def _text() -> str:
    """What no other document says."""
    return f"matriz {next(_TEXTS)}"
