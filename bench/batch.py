"""How many documents a second one firmar/lote call signs, against single calls.

    python -m bench.batch [--documents 200] [--rounds 3] [--batches 10] [--json FILE]

A whole appliance on SQLite (or `--postgres URL`) in a folder of its own; small PDFs,
no two of them alike, with a visible stamp; calls over HTTP on warm connections. A
round signs as many documents by one call for all, then one call after the other, then
eight calls at a time by eight people. While one batch after the other goes on,
somebody else signs single documents, one after the other. After the rounds as many
people as `--batches` says sign a batch each, at once. What was signed last is looked at
by the auditor. Raw signatures of the same HSM are timed before and after, for ratios
that carry over to other machines.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx

from bench.firmar import AT_A_TIME, People, call_all, raw_signatures, summary, take_in
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.ledger import read_ledger
from tests.support.processes.scratch import short_folder

_WARM: Final = 20
_BESIDE: Final = 20
"""Single documents signed in turn while batches go on."""
_ONE_AFTER_THE_OTHER: Final = 12
"""Batches that single documents are signed beside."""


def sign_all(
    client: httpx.Client, person: TestPerson, requests: Sequence[int]
) -> dict[str, Any]:
    """Sign them by one call, looking again until it is over.

    Raises:
        RuntimeError: some were not signed.
    """
    answer = client.post(
        "/solicitudes/firmar/lote",
        json={"solicitudIds": requests, "password": person.signing_password},
    )
    answer.raise_for_status()
    while answer.json()["status"] == "en_proceso":
        time.sleep(float(answer.headers["Retry-After"]))
        answer = client.get(f"/solicitudes/lotes/{answer.json()['loteId']}")
        answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    if told["status"] != "success":
        raise RuntimeError(told["status"])
    return told


class Bench:
    """People and their clients on one appliance.

    Args:
        appliance: that runs.
        documents: of a batch.
    """

    def __init__(self, appliance: Appliance, documents: int) -> None:
        self._appliance = appliance
        self._documents = documents
        self._signer, self._other = appliance.new_person(), appliance.new_person()
        self._eight = People(appliance)

    def round(self) -> dict[str, float]:
        """Documents a second, each way; and what single calls beside it take."""
        with (
            self._appliance.client(self._signer) as client,
            self._appliance.client(self._other) as other,
        ):
            self._eight.at_once(call_all, self._eight.take_in(_WARM // AT_A_TIME + 1))
            found = {
                "batch_per_s": self._rate(
                    lambda requests: sign_all(client, self._signer, requests)
                ),
                "single_per_s": self._rate(
                    lambda requests: call_all(client, self._signer, requests)
                ),
                "eight_per_s": self._eight_rate(),
            }
            alone = self._singles(other)
            with ThreadPoolExecutor(1) as pool:
                batches = [
                    self._take_in(self._documents) for _ in range(_ONE_AFTER_THE_OTHER)
                ]
                going_on = pool.submit(self._sign_batches, client, batches)
                beside = self._singles(other)
                # Where the batches were over first, they were too small for that.
                outlasted = not going_on.done()
                going_on.result()
        found |= {"single_alone_ms": alone}
        return found | ({"single_beside_batch_ms": beside} if outlasted else {})

    def _sign_batches(
        self, client: httpx.Client, batches: Sequence[Sequence[int]]
    ) -> None:
        for requests in batches:
            sign_all(client, self._signer, requests)

    def batches_at_once(self, count: int) -> float:
        """Documents a second of as many batches at once, each of another person."""
        people = People(self._appliance, count)
        requests = people.take_in(self._documents)
        _, took_s = people.at_once(sign_all, requests)
        people.close()
        return count * self._documents / took_s

    def close(self) -> None:
        """Close the clients."""
        self._eight.close()

    def _eight_rate(self) -> float:
        done, took_s = self._eight.at_once(
            call_all, self._eight.take_in(self._documents // AT_A_TIME)
        )
        return sum(map(len, done)) / took_s

    def _take_in(self, count: int, person: TestPerson | None = None) -> list[int]:
        return take_in(self._appliance, person or self._signer, count)

    def _rate(self, work: Any) -> float:
        requests = self._take_in(self._documents)
        begun = time.perf_counter()
        work(requests)
        return self._documents / (time.perf_counter() - begun)

    def _singles(self, client: httpx.Client) -> float:
        """Median of single calls of the other person, in milliseconds."""
        requests = self._take_in(_BESIDE, self._other)
        calls = call_all(client, self._other, requests)
        return float(summary(call.ms for call in calls)["median"])


def run(
    documents: int, rounds: int, batches: int, postgres: str | None
) -> dict[str, object]:
    """All of it."""
    options = {} if postgres is None else {"database": postgres}
    with short_folder() as folder, Appliance.made(folder, **options) as appliance:
        raw_before = raw_signatures(appliance)["median"]
        bench = Bench(appliance, documents)
        found = [bench.round() for _ in range(rounds)]
        together = bench.batches_at_once(batches)
        bench.close()
        newest = read_ledger(appliance).newest
        faults = read_ledger(appliance, after=newest - documents).faults()
        raw_ms = min(raw_before, raw_signatures(appliance)["median"])
    medians = {
        name: round(statistics.median(each[name] for each in found if name in each), 1)
        for name in {name: 0 for each in found for name in each}
    }
    return {
        "documents": documents,
        "rounds": rounds,
        **medians,
        "batches_at_once_per_s": round(together, 1),
        **_beside(medians),
        "batch_per_s_to_raw": round(medians["batch_per_s"] * raw_ms / 1000, 3),
        "batches_at_once_to_raw": round(together * raw_ms / 1000, 3),
        "eight_per_s_to_raw": round(medians["eight_per_s"] * raw_ms / 1000, 4),
        "batch_to_single": round(medians["batch_per_s"] / medians["single_per_s"], 2),
        "raw_c_sign_ms": raw_ms,
        "document_of_batch_to_raw": round(1000 / medians["batch_per_s"] / raw_ms, 1),
        "batch_to_eight": round(medians["batch_per_s"] / medians["eight_per_s"], 2),
        "faults_of_the_last_batch": faults,
        "cores": os.cpu_count() or 0,
        "load_before": os.getloadavg()[0],
    }


def _beside(medians: dict[str, float]) -> dict[str, float]:
    """What a single call takes beside a batch, to one alone."""
    if "single_beside_batch_ms" not in medians:
        return {}
    ratio = medians["single_beside_batch_ms"] / medians["single_alone_ms"]
    return {"single_beside_batch_to_alone": round(ratio, 2)}


def main() -> int:
    """Print the figures as JSON; exit status 1 when the auditor finds a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--postgres", help="URL of a fresh database")
    parser.add_argument("--json", type=Path, help="write them to a file too")
    options = parser.parse_args()
    found = run(options.documents, options.rounds, options.batches, options.postgres)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if found["faults_of_the_last_batch"] else 0


if __name__ == "__main__":
    sys.exit(main())
