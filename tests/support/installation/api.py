"""The REST API over its services, and who calls it; workers are played.

async with open_api(settings) as api_services:
    caller = Caller(api_services, await api_services.bearer(person))
    response = await caller.get("/solicitudes")
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import pyotp
from quart import Quart

from appliance.api import app
from appliance.bootstrap import ServiceRegistry
from appliance.documents.document_store import DocumentStore
from appliance.domain.ids import DocumentId, IntegratorId, PersonId, new_id
from appliance.domain.people.identity import (
    Integrator,
    NewPerson,
    Person,
    SigningSecret,
)
from appliance.domain.ports import PdfInspector
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.identity.login import email_index
from appliance.integration.test_mode.signers import SignersForTests
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import ARGON2
from appliance.people.person_store import PersonStore
from appliance.pki.ocsp_responder import OcspResponder
from appliance.pki.publication import Publishing
from appliance.requests.request_store import RequestStore
from appliance.settings import Settings
from tests.support.factories.cached_hashes import CachedHashes
from tests.support.factories.fakes import (
    FakeBatchSigning,
    FakeHealth,
    FakeRequests,
    FakeSigning,
    FakeTasks,
    request_view,
)
from tests.support.installation.services import Services, open_services, parts_of

CUIL = "20267565393"
EMAIL = "ana@example.com"
LOGIN_PASSWORD = "una clave de ingreso"
BASE_URL = "https://firma.example"
ORIGIN = "https://app.example"
SIGN = {"solicitudId": 7, "password": "clave de firma"}
"""Body of a call of firmar."""
API: Final[dict[str, Any]] = {
    "web": {
        "base_url": BASE_URL,
        "cors_origins": [ORIGIN],
        "body_limit_bytes": 4096,
        # A machine that does much else is slow, not wrong.
        "body_timeout_s": 60,
    },
    "documents": {"limit_bytes": 8192},
    "database": {"busy_timeout_s": 60},
    "auth": {"login_per_minute_address": 10_000, "login_per_minute_account": 10_000},
}
"""Usual settings: the limits of bodies are low, those of callers are not."""


def shorten_body_timeout(app: Quart) -> None:
    """Have a face wait for a tenth of a second for a body."""
    limits = app.extensions["rubrica.limits"]
    app.extensions["rubrica.limits"] = replace(limits, timeout_s=0.1)


def create_api(services: "ApiServices") -> Quart:
    """Make the API over services of which some are doubles."""
    return app.create_api(cast("ServiceRegistry", services))


@dataclass(frozen=True)
class ApiServices(Services):
    """What the REST API stands on, where workers are played."""

    requests: FakeRequests
    signing: FakeSigning
    batch_signing: FakeBatchSigning
    tasks: FakeTasks
    health: FakeHealth

    async def add_person(
        self,
        cuil: str = CUIL,
        email: str = EMAIL,
        state: PersonState = PersonState.ACTIVE,
    ) -> tuple[PersonId, str]:
        """Record a person; gives the id and the TOTP seed."""
        person = PersonId(new_id())
        seed = pyotp.random_base32()
        new = NewPerson(
            person=Person(person, cuil, "Ana Pérez", state, "es"),
            email_sealed=b"-",
            email_index=email_index(self.lookup, email),
            vouched_by=VouchedBy.DEMO,
            login_phc=await CachedHashes(HashSlots()).hash(LOGIN_PASSWORD.encode()),
            totp_sealed=self.sealer.seal(
                seed.encode(), table="login_secret", row=person, column="totp_sealed"
            ),
            signing=SigningSecret(b"-" * 16, ARGON2, 1, "00"),
        )
        async with self.store.write() as transaction:
            await PersonStore(transaction).add(new)
        return person, seed

    async def add_requests(self, person: PersonId, *numbers: int) -> None:
        """Record requests by number, of one integrator and document."""
        now = self.clock.now()
        async with self.store.write() as transaction:
            await PersonStore(transaction).add_integrator(
                Integrator(IntegratorId("i"), "demo", "Demo")
            )
            inspection = request_view(1, person).inspection
            document = await DocumentStore(transaction).add(
                StoredDocument(
                    DocumentId("d"), IntegratorId("i"), "00" * 32, inspection
                ),
                now,
            )
            for _ in range(max(numbers)):
                await RequestStore(transaction).add(
                    NewRequest(
                        person,
                        IntegratorId("i"),
                        document.id,
                        "a.pdf",
                        "operador",
                        now,
                        None,
                    )
                )

    async def bearer(self, person: PersonId, *, age_s: float = 0) -> dict[str, str]:
        """The Authorization header of a signed-in person."""
        at = self.clock.now()
        self.clock.forward(-age_s)
        since = self.clock.now()
        self.clock.at = at
        issued = await self.tokens.issue(person, ("pwd", "otp"), since)
        return {"Authorization": f"Bearer {issued.token}"}


class Caller:
    """Calls the API with the same headers each time."""

    def __init__(self, api_services: ApiServices, headers: dict[str, str]) -> None:
        self.client = create_api(api_services).test_client(use_cookies=False)
        self.headers = headers

    def over(self, api_services: ApiServices) -> "Caller":
        """The same caller of other services."""
        return Caller(api_services, self.headers)

    async def get(self, path: str, **headers: str) -> Any:
        """GET, with more headers."""
        return await self.client.get(path, headers=self._with(headers))

    async def post(self, path: str, body: object, **headers: str) -> Any:
        """POST a JSON body, with more headers."""
        return await self.client.post(path, headers=self._with(headers), json=body)

    def _with(self, more: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {**self.headers, **named}


async def code(response: Any, status: int) -> dict[str, Any]:
    """Check a refusal's status, and give its members."""
    members: dict[str, Any] = json.loads(await response.get_data())
    assert response.status_code == status, members
    return members


@asynccontextmanager
async def open_api(
    settings: Settings, inspector: PdfInspector | None = None
) -> AsyncIterator[ApiServices]:
    """Open the services over a fresh database.

    Args:
        settings: of the installation.
        inspector: the sandbox; None for one that sees one page in every PDF.
    """
    async with open_services(settings, inspector) as services:
        store, clock, tasks = services.store, services.clock, FakeTasks()
        publishing = Publishing(store, clock, settings.pki, "test")
        played: dict[str, Any] = {
            "requests": FakeRequests(),
            "signing": FakeSigning(),
            "batch_signing": FakeBatchSigning(),
            "tasks": tasks,
            "health": FakeHealth(),
            # Nobody would answer who waits.
            "status_answers": OcspResponder(store, clock, settings, publishing, 0.0),
            "signers_for_tests": SignersForTests(
                store,
                services.people,
                services.sealer,
                tasks,
                clock,
                settings.environment,
                services.issuing,
            ),
        }
        yield ApiServices(**{**parts_of(services), **played})
