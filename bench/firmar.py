"""How long one firmar call takes, and where its time goes.

    python -m bench.firmar [--calls 200] [--postgres URL] [--json FILE]

A whole appliance on SQLite (or on PostgreSQL) in a folder of its own; small PDFs, no
two of them alike, with a visible stamp; calls over HTTP on warm connections, one
after the other, then eight at a time by eight people. What was signed is looked at by
the auditor. Raw signatures of the same HSM, before and after, and the stock pyHanko
signer are timed in the same run, for ratios that carry over to other machines.
"""

import argparse
import io
import itertools
import json
import os
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import httpx
import pkcs11
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.keys.hsm_keys import SignatureScheme
from appliance.domain.vocab import EventKind
from appliance.people.person_store import PersonStore
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.module import module_path
from hsm_config.pkcs11.signatures import sign
from hsm_config.profile import load_profile
from tests.support.appliance.appliance import Appliance, TestPerson, intake_order
from tests.support.appliance.ledger import Ledger, read_ledger
from tests.support.documents import pdfs
from tests.support.documents.software_signer import software_signer
from tests.support.processes.scratch import short_folder

_WARM: Final = 20
AT_A_TIME: Final = 8
"""People who call at the same time."""
_TAKE_IN_S: Final = 600
_NUMBERS: Final = itertools.count()
_MS: Final = 1000.0
_STAGES: Final = re.compile(r"document\.signed .*?ms=(\{.*?\}) .*?request=(\d+)")

Numbers = dict[str, float]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One answered call, by the wall clock that the record uses too."""

    request: int
    began: datetime
    ended: datetime

    @property
    def ms(self) -> float:
        """Its time, in milliseconds."""
        return (self.ended - self.began).total_seconds() * _MS


def summary(times_ms: Iterable[float]) -> Numbers:
    """Median and tail of some times."""
    ordered = sorted(times_ms)

    def rank(share: float) -> float:
        return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 2)

    return {
        "median": round(statistics.median(ordered), 2),
        "p95": rank(0.95),
        "p99": rank(0.99),
        "most": round(ordered[-1], 2),
    }


def take_in(appliance: Appliance, person: TestPerson, count: int) -> list[int]:
    """As many requests of one person, each with a document of its own."""
    return take_in_of(appliance, [person] * count)


def take_in_of(appliance: Appliance, people: Sequence[TestPerson]) -> list[int]:
    """A request of each, with a document of its own."""

    async def create(front: ServiceRegistry) -> list[int]:
        made = [pdfs.one_page(f"Recibo {next(_NUMBERS)}") for _ in people]
        async with front.core.store.read() as transaction:
            whose = await PersonStore(transaction).integrator("demo")
        if whose is None:
            raise RuntimeError
        # Many small ones are examined by one job, and none a second time below.
        await front.intake.examined_all(whose.id, made)
        return [
            await front.intake.create_request(intake_order(person), pdf)
            for person, pdf in zip(people, made, strict=True)
        ]

    return appliance.do(create, timeout_s=_TAKE_IN_S)


def call_all(
    client: httpx.Client,
    person: TestPerson,
    requests: Sequence[int],
    at_a_time: int = 1,
) -> list[Call]:
    """Sign a person's requests, one after the other or several at a time."""

    def call(request: int) -> Call:
        began = datetime.now(UTC)
        answer = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": person.signing_password},
        )
        ended = datetime.now(UTC)
        answer.raise_for_status()
        return Call(request, began, ended)

    if at_a_time == 1:
        return [call(request) for request in requests]
    with ThreadPoolExecutor(at_a_time) as pool:
        return list(pool.map(call, requests))


class People:
    """Some people and their clients, who call at the same time.

    Args:
        appliance: that runs.
        count: of people.
    """

    def __init__(self, appliance: Appliance, count: int = AT_A_TIME) -> None:
        self._appliance = appliance
        self._people = [appliance.new_person() for _ in range(count)]
        self._clients = [appliance.client(person) for person in self._people]

    def take_in(self, count: int) -> list[list[int]]:
        """So many requests each."""
        return [take_in(self._appliance, each, count) for each in self._people]

    def at_once(
        self,
        work: Callable[[httpx.Client, TestPerson, Sequence[int]], Result],
        requests: Sequence[Sequence[int]],
    ) -> tuple[list[Result], float]:
        """Have each do something with their requests; and seconds until all are done.

        Args:
            work: of one of them, in a thread of its own.
            requests: of each.
        """
        begun = time.perf_counter()
        with ThreadPoolExecutor(len(self._people)) as pool:
            done = list(pool.map(work, self._clients, self._people, requests))
        return done, time.perf_counter() - begun

    def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            client.close()


def breakdown(ledger: Ledger, calls: Sequence[Call]) -> dict[str, float]:
    """Medians between what the record says of each call, in its order."""
    marks: dict[int, dict[str, datetime]] = defaultdict(dict)
    for slot in ledger.of(tables.attempt_slot):
        marks[slot.request]["slot"] = slot.at
    for event in ledger.of(tables.audit_event):
        marks[event.request][event.event] = event.at
    created = {row.id: row.created for row in ledger.of(tables.activation)}
    for row in ledger.of(tables.activation_item):
        marks[row.request]["created"] = created[row.activation]
    parts: dict[str, list[float]] = defaultdict(list)
    for call in calls:
        mine = marks[call.request]
        line = (
            ("connection, body, bearer, look at the request", call.began),
            ("attempt slot committed, Argon2", mine["slot"]),
            ("activation committed, ring, wake, look, claim", mine["created"]),
            ("claim committed, document read, prepared", mine["activation.claimed"]),
            ("intent committed, C_Sign", mine[EventKind.KEY_INTENDED]),
            ("signature committed, checked, file fsynced", mine[EventKind.KEY_USED]),
            ("firmada committed, news, look again", mine[EventKind.REQUEST_SIGNED]),
            ("link committed, answer", mine[EventKind.LINK_CREATED]),
            ("", call.ended),
        )
        for (name, at), (_, then) in pairwise(line):
            parts[name].append((then - at).total_seconds() * _MS)
    return {name: round(statistics.median(times), 2) for name, times in parts.items()}


def worker_stages(log: str, calls: Sequence[Call]) -> dict[str, float]:
    """Medians of the stages that the workers measured themselves."""
    wanted = {call.request for call in calls}
    stages: dict[str, list[float]] = defaultdict(list)
    for found in _STAGES.finditer(log):
        if int(found[2]) in wanted:
            for name, ms in json.loads(found[1].replace("'", '"')).items():
                stages[name].append(ms)
    return {name: round(statistics.median(times), 2) for name, times in stages.items()}


def repeated(work: Callable[[], object], times: int) -> Numbers:
    """Do some work again and again."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        took.append((time.perf_counter() - begun) * _MS)
    return summary(took)


def raw_signatures(appliance: Appliance) -> Numbers:
    """`C_Sign` with a key on the same token, through the same binding."""
    settings = appliance.settings.hsm
    profile = load_profile(settings.profile)
    os.environ["SOFTHSM2_CONF"] = str(settings.softhsm_conf)
    library = pkcs11.lib(str(module_path(settings, profile)))
    token = library.get_token(token_label=settings.firma.label)
    pin = settings.firma.pin_file.read_text("ascii").strip()
    with token.open(user_pin=pin) as session:
        key = objects.private_key(session, objects.KEEP_ALIVE_KEY.cka_id)
        digest = bytes(32)
        return repeated(lambda: sign(key, digest, SignatureScheme.RSA_PKCS1), 300)


def stock_signatures() -> Numbers:
    """The stock signer of pyHanko, a key in memory, PAdES B-B, invisible."""
    signer = software_signer().stock()
    pdf = pdfs.one_page()
    meta = PdfSignatureMetadata(field_name="Firma", md_algorithm="sha256")

    def sign() -> None:
        writer = IncrementalPdfFileWriter(io.BytesIO(pdf))
        PdfSigner(meta, signer=signer).sign_pdf(writer)

    return repeated(sign, 60)


def run(calls: int, postgres: str | None) -> dict[str, object]:
    """All of it."""
    options = {} if postgres is None else {"database": postgres}
    with short_folder() as folder, Appliance.made(folder, **options) as appliance:
        people, person = People(appliance), appliance.new_person()
        raw_before = raw_signatures(appliance)
        of_each = calls // AT_A_TIME
        people.at_once(call_all, people.take_in(_WARM // AT_A_TIME + 1))
        requests = take_in(appliance, person, calls)
        with appliance.client(person) as client:
            alone = call_all(client, person, requests)
        answers, took_s = people.at_once(call_all, people.take_in(of_each))
        people.close()
        together = [call for each in answers for call in each]
        ledger = read_ledger(appliance, after=max(c.request for c in together) - 50)
        log = appliance.log.read_text()
        raw = min(
            raw_before, raw_signatures(appliance), key=lambda times: times["median"]
        )
        stock = stock_signatures()
        one, per_s = summary(call.ms for call in alone), len(together) / took_s
        return {
            "calls": calls,
            "one_ms": one,
            "eight_ms": summary(call.ms for call in together),
            "eight_per_s": round(per_s, 1),
            "one_breakdown_ms": breakdown(ledger, alone),
            "one_worker_stages_ms": worker_stages(log, alone),
            "raw_c_sign_ms": raw,
            "stock_pyhanko_ms": stock,
            "one_to_raw_c_sign": round(one["median"] / raw["median"], 1),
            "eight_per_s_to_raw_c_sign": round(per_s * raw["median"] / _MS, 4),
            "one_to_stock_pyhanko": round(one["median"] / stock["median"], 1),
            "faults_of_the_last_50": ledger.faults(),
            "cores": os.cpu_count() or 0,
            "load_before": os.getloadavg()[0],
        }


def main() -> int:
    """Print the figures as JSON; exit status 1 when the auditor finds a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--postgres", help="URL of a fresh database")
    parser.add_argument("--json", type=Path, help="write them to a file too")
    options = parser.parse_args()
    found = run(options.calls, options.postgres)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if found["faults_of_the_last_50"] else 0


if __name__ == "__main__":
    sys.exit(main())
