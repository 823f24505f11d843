"""`POST /tsa`: questions of strangers, and a worker with a SoftHSM behind it.

Source: RFC 3161; docs/timestamps.md.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asn1crypto import algos, core, tsp

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import TaskId
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import TimestampQuestion, TimestampRefusal
from appliance.domain.vocab import EventKind, TaskKind
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.publication import Publishing
from appliance.pki.tsa.authority import TimestampWork
from appliance.pki.tsa.tsp_messages import read_question
from hsm_config.provisioning.ca_certificates import read_ca, read_root
from hsm_config.provisioning.init import provision
from tests.support.factories.fakes import MovingClock
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.installation.api import ApiServices, create_api
from tests.support.installation.installation import Installation
from tests.support.pki.timestamps import DATA, Trusted, openssl, trusting
from worker.pades.der import encode
from worker.pki.certificate_authority import Authority
from worker.pki.tsa import InternalTsa
from worker.pki.tsa_tasks import TimestampTasks

QUERY = "application/timestamp-query"
SLOT = "signing/h/1"


@dataclass(frozen=True, slots=True)
class TimestampService:
    """The address, and what lies behind it."""

    parts: ApiServices
    client: Any

    async def post(self, body: bytes, media_type: str = QUERY) -> Any:
        """Put a question."""
        headers = {"Content-Type": media_type}
        return await self.client.post("/tsa", data=body, headers=headers)

    async def answer(self, body: bytes) -> bytes:
        """The answer to a question, which is one of RFC 3161."""
        response = await self.post(body)
        assert response.status_code == 200, await response.get_data()
        assert response.headers["Content-Type"] == "application/timestamp-reply"
        return bytes(await response.get_data())


@asynccontextmanager
async def timestamp_service_of(
    folder: Path, **timestamps: Any
) -> AsyncIterator[TimestampService]:
    """An API with these settings, and no worker."""
    async with Installation(folder, timestamps=timestamps).api() as api_services:
        yield TimestampService(api_services, create_api(api_services).test_client())


@pytest.fixture
async def timestamp_service(tmp_path: Path) -> AsyncIterator[TimestampService]:
    """One that stamps for anybody."""
    options = {"public": True, "requests_per_minute_address": 100_000}
    async with timestamp_service_of(tmp_path, **options) as opened:
        yield opened


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """A trial after `hsm init`, dated before the tests' own time."""
    made = HsmInstallation(tmp_path_factory.mktemp("trial"))
    early = MovingClock()
    early.forward(-86_400)
    provision(made.settings, early)
    return made


@pytest.fixture
async def worker(
    timestamp_service: TimestampService, installation: HsmInstallation
) -> AsyncIterator[None]:
    """Does the tasks of the desk's record."""
    parts, settings = timestamp_service.parts, installation.settings
    tasks = HsmTasks(parts.store, parts.clock, SLOT, "p")
    async with installation.session() as session:
        authority = Authority(session, read_ca(settings), settings)
        publishing = Publishing(parts.store, parts.clock, settings.pki, SLOT)
        work = TimestampWork(parts.store, parts.clock, SLOT)
        tsa = InternalTsa(session, authority, publishing, parts.clock, 1)
        runner = TimestampTasks(work, tsa)

        async def run() -> None:
            while True:
                claim = await tasks.claim_next()
                if claim is None:
                    await asyncio.sleep(0.02)
                else:
                    await runner.run(claim)

        running = asyncio.create_task(run())
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def question(**changes: Any) -> tsp.TimeStampReq:
    """A sound one, but for `changes`."""
    algorithm = changes.pop("algorithm", {"algorithm": "sha256"})
    imprint = changes.pop("imprint", hashlib.sha256(DATA).digest())
    return tsp.TimeStampReq(
        {
            "version": "v1",
            "message_imprint": {
                "hash_algorithm": algorithm,
                "hashed_message": imprint,
            },
            **changes,
        }
    )


def failure(answer: bytes) -> str:
    """Why an answer is a rejection."""
    told = tsp.PKIStatusInfo.load(core.Sequence.load(answer).contents, strict=True)
    assert told["status"].native == "rejection"
    (why,) = told["fail_info"].native
    return str(why)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("options", [("-cert",), ("-no_nonce", "-sha512")])
async def test_openssl_asks_and_takes_the_answer(
    timestamp_service: TimestampService,
    installation: HsmInstallation,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    """Its own query, with nonce and certificates or without either."""
    data, asked = tmp_path / "data", tmp_path / "asked.tsq"
    data.write_bytes(DATA)
    openssl("-query", "-data", data, *options, "-out", asked)

    answered = tmp_path / "answered.tsr"
    answered.write_bytes(await timestamp_service.answer(asked.read_bytes()))

    told = openssl("-reply", "-in", answered, "-text")
    assert "Status: Granted." in told
    if "-cert" in options:
        settings, now = installation.settings, timestamp_service.parts.clock.now()
        trusted = Trusted(read_root(settings), read_ca(settings), now)
        for against in (("-queryfile", asked), ("-data", data)):
            words = ("-verify", "-in", answered, *trusting(trusted, tmp_path))
            assert "Verification: OK" in openssl(*words, *against)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("absent", [True, False], ids=["no parameters", "NULL"])
async def test_answer_has_what_was_asked(
    timestamp_service: TimestampService, absent: bool
) -> None:
    """Nonce, imprint to the octet, and certificates only for who wants them."""
    bare = encode(0x30, algos.DigestAlgorithmId("sha256").dump())
    plain = algos.DigestAlgorithm.load(bare) if absent else {"algorithm": "sha256"}
    asked = question(nonce=secrets.randbits(64), algorithm=plain)

    answer = tsp.TimeStampResp.load(await timestamp_service.answer(asked.dump()))

    signed = answer["time_stamp_token"]["content"]
    told = signed["encap_content_info"]["content"].parsed
    assert told["nonce"].native == asked["nonce"].native
    assert told["message_imprint"].dump() == asked["message_imprint"].dump()
    assert len(signed["certificates"]) == 0


@pytest.mark.usefixtures("worker")
async def test_stamping_is_on_the_record(timestamp_service: TimestampService) -> None:
    """One event with serial, time and imprint; the task goes an hour later."""
    await timestamp_service.answer(question().dump())

    async with timestamp_service.parts.store.read() as transaction:
        (writer,) = await transaction.audit.writers()
        rows = await transaction.audit.of_writer(writer)
    (event,) = [row for row in rows if row.event.event is EventKind.TIMESTAMP_ISSUED]
    work = TimestampWork(
        timestamp_service.parts.store, timestamp_service.parts.clock, "chores/h/1"
    )
    early = await work.forget()
    timestamp_service.parts.clock.forward(3601)

    assert event.event.detail["imprint"] == hashlib.sha256(DATA).hexdigest()
    assert (early, await work.forget()) == (0, 1)


REJECTED = {
    "sha1": (
        question(algorithm={"algorithm": "sha1"}, imprint=b"1" * 20).dump(),
        "bad_alg",
    ),
    "length": (question(imprint=b"1" * 31).dump(), "bad_data_format"),
    "version": (question(version=2).dump(), "bad_request"),
    "policy": (question(req_policy="1.2.3.4").dump(), "unaccepted_policy"),
    "extension": (
        question(
            extensions=[{"extn_id": "1.2.3.4", "critical": False, "extn_value": b""}]
        ).dump(),
        "unaccepted_extensions",
    ),
    "empty": (b"", "bad_data_format"),
    "text": (b"GET / HTTP/1.1", "bad_data_format"),
    "more": (question().dump() + b"\0", "bad_data_format"),
}


@pytest.mark.parametrize("case", REJECTED)
async def test_bad_question_is_rejected_in_its_own_words(
    timestamp_service: TimestampService, case: str, tmp_path: Path
) -> None:
    """HTTP 200, which openssl reads; nothing is asked of the HSM."""
    asked, why = REJECTED[case]

    answer = await timestamp_service.answer(asked)

    assert failure(answer) == why
    (tmp_path / "answer.tsr").write_bytes(answer)
    told = openssl("-reply", "-in", tmp_path / "answer.tsr", "-text")
    assert "Status: Rejected." in told
    async with timestamp_service.parts.store.read() as transaction:
        assert not await HsmTaskStore(transaction).any_open(TaskKind.TIMESTAMP)


def test_no_question_whatever_fails_otherwise() -> None:
    """Every octet of a good one changed, cut and doubled: read, or rejected."""
    good = question(nonce=2**63, cert_req=True, req_policy="1.2.3").dump()
    seen: set[type[object]] = set()
    for at in range(len(good)):
        for value in (0, 1, 0x30, 0x7F, 0x80, 0x84, 0xA0, 0xFF, good[at] ^ 1):
            changed = good[:at] + bytes([value]) + good[at + 1 :]
            for body in (changed, changed[:at], changed[:at] + changed):
                seen.add(type(read_question(body)))

    assert seen <= {TimestampQuestion, TimestampRefusal}


async def test_it_is_off_by_default(tmp_path: Path) -> None:
    """As if there were no such address."""
    async with timestamp_service_of(tmp_path) as services:
        response = await services.post(question().dump())

        assert response.status_code == 404
        assert (await response.get_json())["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "media_type", "status", "code"),
    [
        (b"x" * 4097, QUERY, 413, "BODY_TOO_LARGE"),
        (question().dump(), "application/json", 415, "CONTENT_TYPE"),
        (question().dump(), "application/ocsp-request", 415, "CONTENT_TYPE"),
    ],
)
async def test_what_is_no_question_at_all(
    timestamp_service: TimestampService,
    body: bytes,
    media_type: str,
    status: int,
    code: str,
) -> None:
    """Refused before it is read."""
    response = await timestamp_service.post(body, media_type)

    assert response.status_code == status
    assert (await response.get_json())["code"] == code


async def test_many_questions_of_one_address(tmp_path: Path) -> None:
    """Beyond the setting, 429 until the minute is over."""
    async with timestamp_service_of(
        tmp_path, public=True, requests_per_minute_address=2
    ) as services:
        codes = [(await services.post(b"")).status_code for _ in range(3)]
        services.parts.clock.forward(61)

        assert codes == [200, 200, 429]
        assert (await services.post(b"")).status_code == 200


async def test_without_a_worker_a_later_try_may_do(
    timestamp_service: TimestampService,
) -> None:
    """503 after a while; a worker that comes too late stamps nothing."""
    timestamp_service.parts.timestamps._wait_s = 0.1

    response = await timestamp_service.post(question().dump())

    assert response.status_code == 503
    assert (await response.get_json())["code"] == "TSA_UNAVAILABLE"
    assert response.headers["Retry-After"] == "5"
    timestamp_service.parts.clock.forward(1)
    claim = await HsmTasks(
        timestamp_service.parts.store, timestamp_service.parts.clock, SLOT, "p"
    ).claim_next()
    assert claim is not None
    with pytest.raises(Exception, match="TSA_UNAVAILABLE"):
        TimestampWork(
            timestamp_service.parts.store, timestamp_service.parts.clock, SLOT
        ).question(claim)


async def test_crowd_is_turned_away(
    timestamp_service: TimestampService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than 32 of one address wait in one process; others' places stay free."""
    over = asyncio.Event()

    async def wait(_: TaskId, __: float) -> dict[str, object]:
        """Until the test has seen enough: no worker has come."""
        await over.wait()
        raise ApplianceError(ErrorCode.HSM_UNAVAILABLE)

    monkeypatch.setattr(timestamp_service.parts.timestamps._tasks, "wait", wait)
    asked = [
        asyncio.create_task(timestamp_service.post(question().dump()))
        for _ in range(38)
    ]
    while sum(each.done() for each in asked) < 6:
        waiting = [each for each in asked if not each.done()]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    over.set()
    answers = await asyncio.gather(*asked)

    codes = [(await one.get_json())["code"] for one in answers]
    assert codes.count("OVERLOADED") == 6
    assert codes.count("TSA_UNAVAILABLE") == 32


async def test_task_carries_the_question(timestamp_service: TimestampService) -> None:
    """What a worker reads is what came, a negative nonce too."""
    timestamp_service.parts.timestamps._wait_s = 0.05
    await timestamp_service.post(question(nonce=-5, cert_req=False).dump())

    claim = await HsmTasks(
        timestamp_service.parts.store, timestamp_service.parts.clock, SLOT, "p"
    ).claim_next()
    assert claim is not None
    read = TimestampWork(
        timestamp_service.parts.store, timestamp_service.parts.clock, SLOT
    ).question(claim)

    assert read == TimestampQuestion(
        hashlib.sha256(DATA).digest(),
        DigestAlgorithm.SHA256,
        -5,
        certificates=False,
        null_parameters=True,
    )
