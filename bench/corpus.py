"""A folder of PDFs through the whole appliance, file by file.

    python -m bench.corpus ../shared/corpus

Each file is taken in, signed over HTTP twice (without a stamp, and with one that
places itself), downloaded by its link, and looked at by pyHanko and pdfsig; or it
is refused at the door, by a code.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from appliance.bootstrap import Front
from appliance.domain.errors import ApplianceError
from tests.ledger import document_faults, read_ledger
from tests.parts.appliance import Appliance, TestPerson, intake_order
from tests.parts.places import short_folder

GOOD: Final = "valid"
_AT_A_TIME: Final = 3


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
    """What was wrong, where the repaired copy was signed."""

    @property
    def signed(self) -> bool:
        """Whether both signatures are there and valid."""
        return self.invisible == self.visible == GOOD


def sign_corpus(
    appliance: Appliance, person: TestPerson, files: Sequence[Path]
) -> list[Line]:
    """Take every file in, sign it both ways and look at the results."""
    taken = appliance.do(lambda front: _take_in(front, person, files))
    with (
        appliance.client(person) as client,
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):

        def line(path: Path, requests: list[int] | str) -> Line:
            size = path.stat().st_size
            if isinstance(requests, str):
                return Line(path.name, size, refused=requests)
            invisible, visible = (
                _sign(appliance, client, person, request, visible=visible)
                for request, visible in zip(requests, (False, True), strict=True)
            )
            told = client.get(f"/solicitudes/{requests[0]}").json()["reparacion"]
            damage = [each["codigo"] for each in told["danos"]] if told else []
            return Line(
                path.name,
                size,
                invisible=invisible,
                visible=visible,
                repaired=", ".join(damage),
            )

        return list(pool.map(line, files, taken))


async def _take_in(
    front: Front, person: TestPerson, files: Sequence[Path]
) -> list[list[int] | str]:
    """Two requests for each file, or the code by which it is refused."""
    room = asyncio.Semaphore(_AT_A_TIME)

    async def take(name: str, pdf: bytes) -> list[int] | str:
        order = intake_order(person, name)
        async with room:
            try:
                return [await front.intake.create_request(order, pdf) for _ in "12"]
            except ApplianceError as exc:
                return exc.code.value

    takes = [take(path.name, path.read_bytes()) for path in files]
    return await asyncio.gather(*takes)


def _sign(
    appliance: Appliance,
    client: httpx.Client,
    person: TestPerson,
    request: int,
    *,
    visible: bool,
) -> str:
    """Sign one request and download it; `valid`, or what is wrong."""
    # What is signed: the file, or the repaired copy of it.
    original = client.get(f"/solicitudes/{request}/original").content
    answer = client.post(
        "/solicitudes/firmar",
        json={
            "solicitudId": request,
            "password": person.signing_password,
            "visible": visible,
        },
    )
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.json().get('code', '')}"
    link = answer.json()["documentoFirmado"]
    # The link alone opens it: no bearer goes with this one.
    signed = httpx.get(link, timeout=60).content
    faults = document_faults(signed, original, appliance.roots)
    return "; ".join(faults) or GOOD


def table(lines: Sequence[Line]) -> Iterator[str]:
    """The result as a table in Markdown, and a count."""
    yield "| file | bytes | repaired | invisible | visible | refused |"
    yield "|---|---:|---|---|---|---|"
    for line in lines:
        yield (
            f"| {line.name} | {line.size_bytes} | {line.repaired} "
            f"| {line.invisible} | {line.visible} "
            f"| {line.refused} |"
        )
    signed = sum(line.signed for line in lines)
    refused = sum(bool(line.refused) for line in lines)
    repaired = sum(bool(line.repaired) for line in lines)
    yield ""
    yield (
        f"{len(lines)} files: {signed} signed both ways and valid, {repaired} of them "
        f"as repaired copies, {refused} refused"
    )


def main() -> int:
    """Print the table; exit status 1 when a file is neither valid nor refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    files = sorted(parser.parse_args().folder.glob("*.pdf"))
    with short_folder() as folder, Appliance.made(folder) as appliance:
        lines = sign_corpus(appliance, appliance.new_person(), files)
        faults = read_ledger(appliance).faults()
    print("\n".join([*table(lines), *faults]))
    return 0 if not faults and all(line.signed or line.refused for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
