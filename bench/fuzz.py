"""A folder of PDFs, mutated at random, through every operation of the sandbox.

    python -m bench.fuzz ../shared/corpus --minutes 10

Each mutant is inspected, repaired, drawn and verified by a real sandbox; what is
taken in is then prepared for a signature by the engine. Whatever is answered other
than by a code of the sandbox, late, or not at all is a fault, and the mutant is
written to the folder `--faults`. The same seed makes the same mutants.
"""

import argparse
import asyncio
import io
import random  # noqa: TID251 (mutants that can be had again; no secret)
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pikepdf

from appliance.domain.documents.inspected import FindingKind, Inspection
from appliance.domain.errors import DocumentRefusedError
from appliance.domain.sandbox import REFUSALS
from tests.support.documents import hostile_pdfs
from tests.support.documents.pdf_samples import make_plan
from tests.support.documents.software_signer import make_signer, signed, software_signer
from tests.support.services.sandbox_server import LIMITS, SandboxServer, running_sandbox
from tests.tools.damage import DAMAGED, ENCRYPTED
from worker.pades import prepare
from worker.pades.appearance.fonts import StampFonts, load_fonts

_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_BYTES_MOST: Final = 200_000
_LATE_S: Final = LIMITS.wall_s + 15  # on a busy machine a kill takes a while
_TOKEN: Final = re.compile(rb"/[A-Za-z]{2,20}|\d+ \d+ R|-?\d+(?:\.\d+)?|[\[\]]|<<|>>")
_NUMBERS: Final = (b"0", b"-1", b"99999999999999999999", b"2147483648", b"1e9", b"nan")
_AT_A_TIME: Final = 2


@dataclass(slots=True)
class Tally:
    """What came of the mutants."""

    mutants: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)


def flipped(pdf: bytes, dice: random.Random) -> bytes:
    """A few bytes are others."""
    out = bytearray(pdf)
    for _ in range(dice.choice((1, 3, 10, 100))):
        out[dice.randrange(len(out))] = dice.randrange(256)
    return bytes(out)


def cut(pdf: bytes, dice: random.Random) -> bytes:
    """A piece is missing, stands twice, stands elsewhere, or the end is gone."""
    start, length = dice.randrange(len(pdf)), dice.randrange(1, 2_000)
    piece = pdf[start : start + length]
    rest = pdf[:start] + pdf[start + length :]
    place = dice.randrange(len(rest) + 1)
    moved = rest[:place] + piece + rest[place:]
    return dice.choice((rest, pdf[:start] + piece + pdf[start:], moved, pdf[:start]))


def retold(pdf: bytes, dice: random.Random) -> bytes:
    """Some tokens are others of the same file, most of the same length."""
    out = bytearray(pdf)
    found = [(m.start(), m.group()) for m in _TOKEN.finditer(pdf)]
    for _ in range(dice.choice((1, 2, 5, 20))):
        if not found:
            break
        at, token = dice.choice(found)
        same = [other for _, other in found if len(other) == len(token)]
        out[at : at + len(token)] = dice.choice(same)
    if dice.random() < 0.2 and found:
        at, token = dice.choice(found)
        out[at : at + len(token)] = dice.choice(_NUMBERS)
    return bytes(out)


def rewired(pdf: bytes, dice: random.Random) -> bytes:
    """Sound in form: entries of dictionaries and arrays are exchanged or gone."""
    with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
        nodes = list(opened.objects)
        holders = [each for each in nodes if _keys(each)]
        for _ in range(dice.choice((1, 2, 5, 20))):
            holder = dice.choice(holders)
            key = dice.choice(_keys(holder))
            wish = dice.random()
            if wish < 0.2:
                del holder[key]
            elif wish < 0.7:
                holder[key] = dice.choice(nodes)
            else:
                giver = dice.choice(holders)
                holder[key] = giver[dice.choice(_keys(giver))]
        out = io.BytesIO()
        mode = dice.choice([*pikepdf.ObjectStreamMode.__members__.values()])
        opened.save(out, object_stream_mode=mode, fix_metadata_version=False)
    return out.getvalue()


def _keys(holder: pikepdf.Object) -> list[str]:
    """Keys of a dictionary's or stream's entries that may be set."""
    if not isinstance(holder, pikepdf.Dictionary | pikepdf.Stream):
        return []
    return sorted(set(holder.keys()) - {"/Length", "/Type"})


Mutation = Callable[[bytes, random.Random], bytes]
MUTATIONS: Final[tuple[Mutation, ...]] = (flipped, cut, retold, rewired, rewired)


def originals(folder: Path) -> list[bytes]:
    """What is mutated: small files of the folder, and some of the tests' own."""
    files = [path.read_bytes() for path in sorted(folder.glob("*.pdf"))]
    plain = hostile_pdfs.plain()
    return [
        *(pdf for pdf in files if len(pdf) <= _BYTES_MOST),
        *(make() for make in {**DAMAGED, **ENCRYPTED}.values()),
        hostile_pdfs.hybrid(),
        signed(plain),
        signed(signed(plain), field="Firma2"),
    ]


def mutants(pdfs: Sequence[bytes], seed: int) -> Iterator[tuple[int, bytes]]:
    """Mutants without end, by number."""
    number = seed
    while True:
        number += 1
        dice = random.Random(number)  # noqa: S311 (no secret; to be had again)
        pdf = dice.choice(pdfs)
        try:
            yield number, dice.choice(MUTATIONS)(pdf, dice)
        except Exception:  # noqa: BLE001, S112 (qpdf refuses some of them)
            continue


async def judge(
    server: SandboxServer, pdf: bytes, prepared: Callable[[bytes], None], tally: Tally
) -> list[str]:
    """Put one mutant through everything; what is wrong with the answers."""
    client, roots = server.client, [software_signer().root]
    faults: list[str] = []
    results: dict[str, object] = {}
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "inspect": lambda: client.inspect(pdf),
        "repair": lambda: client.repair(pdf),
        "render": lambda: client.render(pdf, 1, None, 48),
        "verify": lambda: client.verify(pdf, roots),
    }
    for name, ask in asked.items():
        began = time.monotonic()
        try:
            results[name] = await ask()
            said = "ok"
        except DocumentRefusedError as exc:
            said = exc.code.value
            tally.reasons[f"{name} {said}: {exc.reason}"] += 1
            if exc.code not in REFUSALS:
                faults.append(f"{name}: {said}")
        except Exception as exc:  # noqa: BLE001 (that is what is looked for)
            said = type(exc).__name__
            faults.append(f"{name}: {exc!r}")
        took = time.monotonic() - began
        tally.slowest_s = max(tally.slowest_s, took)
        tally.outcomes[f"{name} {said}"] += 1
        if took > _LATE_S:
            faults.append(f"{name}: {took:.0f} s")
    return faults + await _signable(results.get("inspect"), pdf, prepared, tally)


async def _signable(
    inspection: object, pdf: bytes, prepared: Callable[[bytes], None], tally: Tally
) -> list[str]:
    """Whether the engine can sign what was taken in as it is."""
    if not isinstance(inspection, Inspection):
        return []
    if inspection.docmdp == 1 or inspection.signing.permitted == 1:
        return []
    if FindingKind.DAMAGED in inspection.findings and not inspection.signatures:
        return []  # a copy would be signed
    try:
        await asyncio.to_thread(prepared, pdf)
    except Exception as exc:  # noqa: BLE001 (that is what is looked for)
        tally.outcomes["prepare failed"] += 1
        return [f"taken in, not signable: {exc!r}"]
    tally.outcomes["prepare ok"] += 1
    return []


def _preparing(fonts: StampFonts) -> Callable[[bytes], None]:
    """Prepares an invisible signature and forgets it."""
    signer = make_signer()

    def prepared(pdf: bytes) -> None:
        prepare(pdf, make_plan(signer), fonts)

    return prepared


async def fuzz(pdfs: Sequence[bytes], seed: int, seconds: float, kept: Path) -> Tally:
    """Run for a while."""
    tally, end = Tally(), time.monotonic() + seconds
    prepared = _preparing(load_fonts(_FONTS))
    source = mutants(pdfs, seed)

    async def work(server: SandboxServer) -> None:
        while time.monotonic() < end:
            number, pdf = next(source)
            tally.mutants += 1
            for fault in await judge(server, pdf, prepared, tally):
                tally.faults.append(f"{number}: {fault}")
                _keep(kept / f"{number}.pdf", pdf)

    with running_sandbox(jobs=_AT_A_TIME) as server:
        await asyncio.gather(*(work(server) for _ in range(_AT_A_TIME)))
        await server.client.ping()
        if server.process.poll() is not None:
            tally.faults.append("the sandbox itself ended")
        if not await asyncio.to_thread(_ends_its_jobs, server):
            tally.faults.append("jobs are left")
    return tally


def _ends_its_jobs(server: SandboxServer) -> bool:
    """Wait until no job is left; False when one stays."""
    end = time.monotonic() + _LATE_S
    while server.jobs() and time.monotonic() < end:
        time.sleep(0.1)
    return not server.jobs()


def _keep(path: Path, pdf: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pdf)


def main() -> int:
    """Print what came of it; exit status 1 on any fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=Path, default=Path("fuzz-faults"))
    chosen = parser.parse_args()
    tally = asyncio.run(
        fuzz(originals(chosen.folder), chosen.seed, chosen.minutes * 60, chosen.faults)
    )
    print(f"{tally.mutants} mutants, the slowest answer {tally.slowest_s:.1f} s")
    for counted in (tally.outcomes, tally.reasons):
        print("\n".join(f"{count:7} {what}" for what, count in counted.most_common(40)))
    print("\n".join(tally.faults) or "no faults")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
