"""A folder of PDFs through the whole appliance, file by file.

    python -m bench.corpus ../shared/corpus

Each file is taken in, signed over HTTP twice (without a stamp, and with one that
places itself), downloaded by its link, and looked at by pyHanko and pdfsig; or it
is refused at the door, by a code. The pages of what was signed are drawn and
compared with those of what was to be signed: they differ in the stamp alone. Of a
repaired copy, which is what its signer reads, a mark tells where it looks unlike
the file that came in.
Files that `tests.tools.damage` damages or encrypts go the same way after them.
"""

import argparse
import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pypdfium2

from appliance.bootstrap import ServiceRegistry
from appliance.domain.errors import ApplianceError
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import SignatureLevel
from tests.support.appliance.appliance import Appliance, TestPerson, intake_order
from tests.support.appliance.ledger import document_faults, read_ledger
from tests.support.documents.long_term_validators import lta_failures
from tests.support.documents.page_images import (
    Box,
    difference,
    is_within,
    pictures_or_none,
)
from tests.support.processes.bounded_calls import BoundedPool, TooLateError
from tests.support.processes.scratch import short_folder
from tests.tools.damage import DAMAGED, ENCRYPTED

GOOD: Final = "valid"
LOOKS: Final = "looks different"
UNLIKE: Final = "looks unlike what came in"
"""Of a repaired copy; its signer is shown the copy, and told of the damage."""
LEVEL: Final = SignatureLevel.B_LT
NOWHERE: Final[Box] = (0.0, 0.0, 0.0, 0.0)
"""Of a signature that is not shown."""
_AT_A_TIME: Final = 3
_TURN: Final = 30
"""Files that are taken in before they are signed: a folder of any size shows early
how it goes, and no bearer has to outlast it."""
_START_S: Final = 60
_INTAKE_S: Final = 60
"""For each file: a job of the sandbox may take 20 seconds, and a repair takes three."""
_VALIDATION_S: Final = 120


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one file."""

    name: str
    size_bytes: int
    refused: str = ""
    """The code, where it was refused at the door."""
    invisible: str = ""
    """`valid`, or what is wrong with it."""
    visible: str = ""
    """Likewise, with a stamp."""
    repaired: str = ""
    """What was wrong, where the repaired copy was signed, and whether it shows."""

    @property
    def signed(self) -> bool:
        """Whether both signatures are there and valid."""
        return self.invisible == self.visible == GOOD


def read(folder: Path) -> dict[str, bytes]:
    """The PDFs of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.pdf"))}


def made() -> dict[str, bytes]:
    """PDFs that were damaged, or encrypted with the empty password, by name."""
    return {name: make() for name, make in {**DAMAGED, **ENCRYPTED}.items()}


def sign_corpus(
    appliance: Appliance,
    person: TestPerson,
    files: Mapping[str, bytes],
    *,
    level: SignatureLevel = LEVEL,
    drawn_every: int = 1,
    tell: Callable[[Line], object] | None = None,
) -> list[Line]:
    """Take every file in, sign it both ways and look at the results.

    Args:
        appliance: with timestamps of its own.
        person: signs.
        files: by name.
        level: of each signature.
        drawn_every: the pages of each so manieth file are drawn and compared.
        tell: called with each line as soon as it and those before it are there.
    """
    lines: list[Line] = []
    with closing(BoundedPool(_VALIDATION_S)) as judges:
        names = iter(files)
        while turn := list(itertools.islice(names, _TURN)):
            drawn = {
                name
                for at, name in enumerate(turn, start=len(lines))
                if at % drawn_every == 0
            }
            some = {name: files[name] for name in turn}
            for line in _sign_some(appliance, person, level, some, drawn, judges):
                if tell is not None:
                    tell(line)
                lines.append(line)
    return lines


def _sign_some(
    appliance: Appliance,
    person: TestPerson,
    level: SignatureLevel,
    files: Mapping[str, bytes],
    drawn: set[str],
    judges: BoundedPool,
) -> Iterator[Line]:
    """Lines of some files, in their order."""
    taken = appliance.do(
        lambda front: _take_in(front, person, level, files),
        timeout_s=_START_S + _INTAKE_S * len(files),
    )
    with (
        appliance.client(person) as client,
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):

        def line(name: str, requests: list[int] | str) -> Line:
            pdf = files[name]
            if isinstance(requests, str):
                return Line(name, len(pdf), refused=requests)
            place = _Place(appliance, client, person, level, judges, name in drawn)
            invisible, visible = (
                place.outcome(request, visible=visible)
                for request, visible in zip(requests, (False, True), strict=True)
            )
            told = client.get(f"/solicitudes/{requests[0]}").json()["reparacion"]
            damage = [each["codigo"] for each in told["danos"]] if told else []
            if told and name in drawn and place.is_unlike(requests[0], pdf):
                damage.append(UNLIKE)
            return Line(
                name,
                len(pdf),
                invisible=invisible,
                visible=visible,
                repaired=", ".join(damage),
            )

        yield from pool.map(line, files, taken)


async def _take_in(
    front: ServiceRegistry,
    person: TestPerson,
    level: SignatureLevel,
    files: Mapping[str, bytes],
) -> list[list[int] | str]:
    """Two requests for each file, or the code by which it is refused."""
    room = asyncio.Semaphore(_AT_A_TIME)

    async def take(name: str, pdf: bytes) -> list[int] | str:
        named = intake_order(person, name if name.endswith(".pdf") else f"{name}.pdf")
        order = replace(named, wishes=ProfileWishes(level))
        async with room:
            try:
                return [await front.intake.create_request(order, pdf) for _ in "12"]
            except ApplianceError as exc:
                return exc.code.value

    return await asyncio.gather(*(take(name, pdf) for name, pdf in files.items()))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one file is signed."""

    appliance: Appliance
    client: httpx.Client
    person: TestPerson
    level: SignatureLevel
    judges: BoundedPool
    """Where others look at what was signed."""
    drawn: bool
    """Whether its pages are drawn and compared."""

    def outcome(self, request: int, *, visible: bool) -> str:
        """The same as `sign`; whatever fails is this file's result, not the end."""
        try:
            return self.sign(request, visible=visible)
        except TooLateError:
            return "validators take too long"
        except Exception as exc:  # noqa: BLE001 (each file has its line)
            return f"{type(exc).__name__}: {exc}"[:200]

    def sign(self, request: int, *, visible: bool) -> str:
        """Sign one request and download it; `valid`, or what is wrong."""
        original = self._original(request)
        place = self._stamp(request) if visible and self.drawn else NOWHERE
        answer = self.client.post(
            "/solicitudes/firmar",
            json={
                "solicitudId": request,
                "password": self.person.signing_password,
                "visible": visible,
            },
        )
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.json().get('code', '')}"
        # The link alone opens it: no bearer goes with this one.
        signed = httpx.get(answer.json()["documentoFirmado"], timeout=60).content
        faults = self.judges.call(
            document_faults, signed, original, self.appliance.roots
        )
        if (level := answer.json()["nivel"]) != self.level:
            faults.append(f"level {level}")
        elif level == SignatureLevel.B_LTA:
            (root,) = self.appliance.roots
            faults += self.judges.call(lta_failures, signed, root, datetime.now(UTC))
        if (
            self.drawn
            and place is not None
            # Elsewhere: PDFium is not to be used by two threads at once.
            and not self.judges.call(_differs_in, original, signed, place)
        ):
            faults.append(LOOKS)
        return "; ".join(faults) or GOOD

    def is_unlike(self, request: int, came: bytes) -> bool:
        """Whether what is signed looks otherwise than the file that came in."""
        try:
            original = self._original(request)
            return not self.judges.call(_differs_in, came, original, NOWHERE)
        except TooLateError:
            return False

    def _original(self, request: int) -> bytes:
        """What is signed: the file, or the repaired copy of it."""
        return self.client.get(f"/solicitudes/{request}/original").content

    def _stamp(self, request: int) -> Box | None:
        """Where the stamp is going to be, as the preview tells; None: not drawn."""
        url = f"/solicitudes/{request}/vista-previa"
        told = self.client.post(url, json={}).json().get("sello")
        if told is None:
            return None
        return told["x"], told["y"], told["ancho"], told["alto"]


def _differs_in(before: bytes, after: bytes, place: Box) -> bool:
    """Whether the first page differs in a place alone, and no other at all.

    Pages that cannot be drawn, before or after, are not compared.

    Args:
        before: one PDF.
        after: another.
        place: x, y, width and height in points; `NOWHERE`.
    """
    was, now = pictures_or_none(before), pictures_or_none(after)
    if not was:
        return True
    if len(was) != len(now):
        return False
    drawn = [
        (at, difference(a, b))
        for at, (a, b) in enumerate(zip(was, now, strict=True))
        if a is not None and b is not None
    ]
    if any(found for at, found in drawn if at):
        return False
    first = next((found for at, found in drawn if at == 0), None)
    if not drawn or drawn[0][0] or first is None:
        # A stamp of less than a pixel is not seen, nor one on a page without picture.
        return place == NOWHERE or not drawn or drawn[0][0] > 0
    if place == NOWHERE:
        return False
    return is_within(first, pypdfium2.PdfDocument(before)[0].get_size(), place)


HEAD: Final = (
    "| file | bytes | repaired | invisible | visible | refused |",
    "|---|---:|---|---|---|---|",
)


def row(line: Line) -> str:
    """A line as a row of the table."""
    return (
        f"| {line.name} | {line.size_bytes} | {line.repaired} "
        f"| {line.invisible} | {line.visible} "
        f"| {line.refused} |"
    )


def count(lines: Sequence[Line]) -> str:
    """How many were signed, and how."""
    signed = sum(line.signed for line in lines)
    refused = sum(bool(line.refused) for line in lines)
    repaired = sum(bool(line.repaired) for line in lines)
    return (
        f"{len(lines)} files: {signed} signed both ways and valid, {repaired} of them "
        f"as repaired copies, {refused} refused"
    )


def table(lines: Sequence[Line]) -> Iterator[str]:
    """The result as a table in Markdown, and a count."""
    yield from HEAD
    yield from map(row, lines)
    yield ""
    yield count(lines)


def main() -> int:
    """Print the table; exit status 1 when a file is neither valid nor refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--drawn-every", type=int, default=1, metavar="N")
    parser.add_argument(
        "--level", type=SignatureLevel, choices=SignatureLevel, default=LEVEL
    )
    asked = parser.parse_args()
    files = {**read(asked.folder), **made()}
    began = time.monotonic()
    # Row by row, so that a run of an hour can be followed, through a pipe too.
    tell = partial(print, flush=True)
    for line in HEAD:
        tell(line)
    with short_folder() as folder, Appliance.made(folder) as appliance:
        lines = sign_corpus(
            appliance,
            appliance.new_person(),
            files,
            level=asked.level,
            drawn_every=asked.drawn_every,
            tell=lambda line: tell(row(line)),
        )
        faults = read_ledger(appliance).faults()
    took = f"{time.monotonic() - began:.0f} s"
    print("\n".join(["", count(lines), took, *faults]))
    return 0 if not faults and all(line.signed or line.refused for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
