"""How long one firmar call takes, and where its time goes.

    python -m bench.firmar [--calls 200] [--json FILE]

A whole appliance on SQLite in a folder of its own; a small PDF; calls over HTTP
on warm connections, one after the other, then eight at a time. What was signed
is looked at by the auditor. Raw signatures of the same HSM and the stock pyHanko
signer are timed in the same run, for ratios that carry over to other machines.
"""

import argparse
import io
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
from typing import Final

import httpx
import pkcs11
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner

from appliance.core.database import tables
from appliance.domain.keys import SignatureScheme
from appliance.domain.vocab import EventKind
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.module import module_path
from hsm_config.pkcs11.signatures import sign
from hsm_config.profile import load_profile
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.ledger import Ledger, read_ledger
from tests.support.documents import pdfs
from tests.support.documents.software_signer import software_signer
from tests.support.processes.scratch import short_folder

_WARM: Final = 20
_AT_A_TIME: Final = 8
_MS: Final = 1000.0
_STAGES: Final = re.compile(r"document\.signed .*?ms=(\{.*?\}) .*?request=(\d+)")

Numbers = dict[str, float]


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


def call_all(
    client: httpx.Client, person: TestPerson, requests: Sequence[int], at_a_time: int
) -> list[Call]:
    """Sign them all."""

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


def run(calls: int) -> dict[str, object]:
    """All of it."""
    with short_folder() as folder, Appliance.made(folder) as appliance:
        person = appliance.new_person()
        count = _WARM + 2 * calls
        requests = appliance.new_requests(person, pdfs.one_page(), count)
        with appliance.client(person) as client:
            call_all(client, person, requests[:_WARM], _AT_A_TIME)
            alone = call_all(client, person, requests[_WARM : _WARM + calls], 1)
            begun = time.perf_counter()
            together = call_all(client, person, requests[_WARM + calls :], _AT_A_TIME)
            took_s = time.perf_counter() - begun
        ledger = read_ledger(appliance, after=requests[-50])
        log = appliance.log.read_text()
        raw, stock = raw_signatures(appliance), stock_signatures()
        one = summary(call.ms for call in alone)
        return {
            "calls": calls,
            "one_ms": one,
            "eight_ms": summary(call.ms for call in together),
            "eight_per_s": round(calls / took_s, 1),
            "one_breakdown_ms": breakdown(ledger, alone),
            "one_worker_stages_ms": worker_stages(log, alone),
            "raw_c_sign_ms": raw,
            "stock_pyhanko_ms": stock,
            "one_to_raw_c_sign": round(one["median"] / raw["median"], 1),
            "one_to_stock_pyhanko": round(one["median"] / stock["median"], 1),
            "faults_of_the_last_50": ledger.faults(),
            "cores": os.cpu_count() or 0,
            "load_before": os.getloadavg()[0],
        }


def main() -> int:
    """Print the figures as JSON; exit status 1 when the auditor finds a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json", type=Path, help="write them to a file too")
    options = parser.parse_args()
    found = run(options.calls)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if found["faults_of_the_last_50"] else 0


if __name__ == "__main__":
    sys.exit(main())
