"""Documents put and fetched in a folder and in a bucket, by the same process.

    python -m bench.documents [--documents 200] [--concurrency 8]

The bucket is of moto's server beside it, which is Python and computes on the same
cores: a real store answers sooner, over a real link. So the ratio says what the way
there costs at most, and only the one of one run means anything.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final

from appliance.documents.local.blob_store import LocalBlobStore
from appliance.documents.s3.blob_store import S3BlobStore
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import BlobMaintenance
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.services.s3 import S3Server

_ONE: Final = IntegratorId("00000000-0000-4000-8000-000000000001")
_SIZE: Final = 100_000
_LARGE: Final = 50_000_000


async def _per_second(
    calls: Sequence[Awaitable[str | bytes]], concurrency: int
) -> tuple[float, list[str | bytes]]:
    """How many calls end in a second, some at a time, and what each gave."""
    turns = asyncio.Semaphore(concurrency)

    async def in_turn(call: Awaitable[str | bytes]) -> str | bytes:
        async with turns:
            return await call

    begun = time.perf_counter()
    gave = await asyncio.gather(*map(in_turn, calls))
    return len(calls) / (time.perf_counter() - begun), gave


async def _measure(
    store: BlobMaintenance, count: int, concurrency: int
) -> dict[str, float]:
    """Documents of 100 KB a second, and seconds of one of 50 MB."""
    small = [os.urandom(_SIZE) for _ in range(count)]
    put, names = await _per_second([store.put(_ONE, o) for o in small], concurrency)
    got, _ = await _per_second([store.get(_ONE, str(n)) for n in names], concurrency)
    large = os.urandom(_LARGE)
    begun = time.perf_counter()
    sha256 = await store.put(_ONE, large)
    is_put = time.perf_counter()
    stream = await store.stream(_ONE, sha256)
    async for _ in stream.pieces:
        pass
    return {
        "put_per_s": put,
        "get_per_s": got,
        "put_large_s": is_put - begun,
        "get_large_s": time.perf_counter() - is_put,
    }


def run(count: int, concurrency: int) -> dict[str, dict[str, float]]:
    """Both, one after the other, and the bucket's figures in those of the folder."""
    keys = FixedDocumentKeys()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as beside,
        S3Server.running(Path(beside)) as server,
    ):
        bucket = S3BlobStore(server.open(server.new_bucket()), keys)
        local = LocalBlobStore(Path(folder), keys)
        figures = {
            name: asyncio.run(_measure(store, count, concurrency))
            for name, store in (("folder", local), ("bucket", bucket))
        }
    figures["bucket to folder"] = {
        name: value / figures["folder"][name]
        for name, value in figures["bucket"].items()
    }
    return {
        name: {key: round(value, 2) for key, value in found.items()}
        for name, found in figures.items()
    }


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=8)
    given = parser.parse_args()
    print(json.dumps(run(given.documents, given.concurrency), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
