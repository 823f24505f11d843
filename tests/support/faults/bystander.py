"""Somebody who only wants to sign, and how long that takes them.

bystander = Bystander.of(appliance)
quiet = bystander.times()
with attacking(…):
    meanwhile = bystander.times()
assert max(meanwhile.ratios(quiet).values()) <= 2
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import httpx
import psutil

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import log_in_whole
from tests.support.documents import pdfs
from tests.support.patience import CALL_S

_TURNS: Final = 9
_READY: Final = 120
"""Requests for some measurements and the time until things are well again."""
_SAMPLE_S: Final = 0.05
_MIB: Final = 1 << 20
_PDF: Final = pdfs.one_page()


@dataclass(frozen=True, slots=True)
class Times:
    """Median seconds of each thing that somebody does."""

    sign: float
    list: float
    upload: float
    login: float

    def ratios(self, quiet: "Times") -> dict[str, float]:
        """How many times longer than when it was quiet.

        Args:
            quiet: the same, with nobody else there.
        """
        return {
            name: getattr(self, name) / getattr(quiet, name)
            for name in ("sign", "list", "upload", "login")
        }

    def least(self, other: "Times") -> "Times":
        """The quicker of two, for each thing: what else runs never makes it quicker.

        Args:
            other: taken at another time.
        """
        return Times(
            min(self.sign, other.sign),
            min(self.list, other.list),
            min(self.upload, other.upload),
            min(self.login, other.login),
        )


@dataclass
class Integrator:
    """An integrator whose pages show the frame."""

    appliance: Appliance
    code: str
    key: str = field(repr=False)

    @classmethod
    def of(cls, appliance: Appliance, code: str) -> "Integrator":
        """A new one, with an API key."""

        async def make(front: ServiceRegistry) -> str:
            await front.integrators.create("operator", code, code.title())
            made = await front.integrators.create_key("operator", code, "a", None)
            return made.secret

        return cls(appliance, code, appliance.do(make))

    def session(self) -> tuple[str, str]:
        """A new frame session: its bearer and its token."""
        answer = httpx.post(
            f"{self.appliance.base_url}/api/integration/session/new",
            params={"id": self.code},
            headers={"X-Api-Key": self.key},
            timeout=CALL_S,
        )
        token: str = answer.raise_for_status().json()["tokenSession"]
        page = self.appliance.do(lambda front: front.sessions.page(token, None))
        init = {
            "nonce": token,
            "sessionToken": token,
            "userData": {"cuil": "20-26756539-3", "email": "a@b.example"},
        }
        body = {"page": page.session_public_id, "init": init}
        opened = httpx.post(
            f"{self.appliance.iframe_url}/embed/api/init", json=body, timeout=CALL_S
        )
        bearer: str = opened.raise_for_status().json()["bearer"]
        return bearer, token


@dataclass
class Bystander:
    """Signs, lists, uploads and logs in, one after the other.

    They log in from an address from which they have done so before.
    """

    appliance: Appliance
    person: TestPerson
    integrator: Integrator
    requests: list[int]
    client: httpx.Client

    @classmethod
    def of(cls, appliance: Appliance) -> "Bystander":
        """One with nothing to sign yet."""
        person = appliance.new_person()
        integrator = Integrator.of(appliance, "vecino")
        bystander = cls(appliance, person, integrator, [], appliance.client(person))
        log_in_whole(appliance, bystander.client, person)
        return bystander

    def prepare(self) -> None:
        """Have enough to sign, and a bearer that holds long enough."""
        missing = max(0, _READY - len(self.requests))
        self.requests += self.appliance.new_requests(self.person, _PDF, missing)
        self.client.close()
        self.client = self.appliance.client(self.person)

    def times(self) -> Times:
        """How long each thing takes now: the median of some."""
        sessions = [self.integrator.session()[0] for _ in range(_TURNS)]
        taken: dict[str, list[float]] = {
            "sign": [],
            "list": [],
            "upload": [],
            "login": [],
        }
        for bearer in sessions:
            taken["login"].append(_timed(self._login))
            taken["list"].append(_timed(self._list))
            taken["sign"].append(_timed(self._sign))
            taken["upload"].append(_timed(partial(self.upload, bearer)))
        return Times(**{name: statistics.median(all_) for name, all_ in taken.items()})

    def signing_s(self) -> float:
        """Seconds that a signature takes now: the median of some."""
        return statistics.median(_timed(self._sign) for _ in range(_TURNS))

    def recovery_s(self, quiet: Times) -> float:
        """Seconds until signing takes no more than twice its quiet time again."""
        began = time.monotonic()
        while _timed(self._sign) > 2 * quiet.sign:
            pass
        return time.monotonic() - began

    def _list(self) -> None:
        self.client.get("/solicitudes", params={"limite": 20}).raise_for_status()

    def _login(self) -> None:
        """Give the right password; the code that follows may be used once in 30 s."""
        body = {"usuario": self.person.cuil, "password": self.person.login_password}
        answer = self.client.post("/auth/login", json=body)
        assert answer.status_code == 200, answer.text

    def _sign(self) -> None:
        body = {
            "solicitudId": self.requests.pop(),
            "password": self.person.signing_password,
        }
        answer = self.client.post("/solicitudes/firmar", json=body)
        assert answer.status_code == 200, answer.text

    def upload(self, bearer: str, pdf: bytes = _PDF) -> None:
        """Make a document that of a session of the frame."""
        answer = httpx.post(
            f"{self.appliance.iframe_url}/embed/api/document",
            content=pdf,
            headers={
                "Authorization": f"Bearer {bearer}",
                "Content-Type": "application/pdf",
                "X-File-Name": "contrato.pdf",
            },
            timeout=CALL_S,
        )
        assert answer.status_code == 200, answer.text


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@dataclass
class Memory:
    """Resident memory of a role's processes, in MiB."""

    before: int = 0
    peak: int = 0


@contextmanager
def watched_memory(processes: list[psutil.Process]) -> Iterator[Memory]:
    """Watch the largest of some processes grow.

    Args:
        processes: of one role.
    """
    found = Memory(before=_largest(processes))
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_SAMPLE_S):
            found.peak = max(found.peak, _largest(processes))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()


def _largest(processes: list[psutil.Process]) -> int:
    return int(max(each.memory_info().rss for each in processes) / _MIB)
