"""A confined job imports no module, opens no file, and makes no call that is refused.

Each operation runs over the corpora and over what the tests make, in a real sandbox.
An audit hook of Python and strace watch the jobs. A failure names the module or the
path: load it in `worker.sandbox.prewarm`.
"""

import io
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError
from appliance.domain.vocab import FontName, FontStyle
from tests.integration.sandbox.test_faulty_documents import b_lt
from tests.support.documents import pdfs
from tests.support.documents.late_load_documents import corpora, documents, pictures
from tests.support.documents.odd_certificates import SIGNER, with_string_types
from tests.support.factories.fakes import MovingClock
from tests.support.pki.long_term_pki import LongTermPki
from tests.support.services.sandbox_server import ROOT, running_sandbox
from tests.support.services.watched_sandbox import (
    LateLoad,
    WatchedSandbox,
    kills,
    late_calls,
    watching_sandbox,
    why_not_traced,
)
from worker.pades.appearance.fonts import StampFonts

# Under strace, and among other tests, all operations over one group take minutes.
pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]
_SAMPLE = 4
"""Of the corpora each fourth file; all of them run behind ./check --long."""

SHARED = ROOT.parent / "shared"
CP1252 = SHARED / "failing" / "verify-cp1252"
_DPI = 36
_STAMP = StampLayout(
    page=1,
    lines=("Ada Prueba",),
    font_name=FontName.SERIF,
    font_style=FontStyle.BOLD,
    font_size_pt=12,
    color=(1, 0, 0),
    text_x=6,
    text_y=6,
    x=40,
    y=40,
    width=200,
    height=50,
    rect=(40, 752, 240, 802),
    rotate=0,
)


@dataclass(frozen=True)
class RunRecord:
    """Loads and calls of all jobs of a run."""

    names: list[str]
    """Operation and document of each job, in order."""
    loads: dict[str, list[LateLoad]]
    """By name, for the jobs that loaded something."""
    calls: list[list[str]]
    """Late calls of each job, in order; empty without strace."""
    font_folders: list[str]
    """Calls that list the host's fonts, of the template and its jobs."""
    untraced: str | None
    """Reason why there is no trace."""


def certificates_of(pdf: bytes) -> list[bytes]:
    """Every certificate in the signatures of a PDF, DER; none if it is unreadable."""
    found: set[bytes] = set()
    with suppress(Exception):
        for each in PdfFileReader(io.BytesIO(pdf), strict=False).embedded_signatures:
            found |= {one.chosen.dump() for one in each.signed_data["certificates"]}
    return sorted(found)


def operations(
    client: SandboxClient, pdf: bytes
) -> Iterator[tuple[str, Callable[[], Awaitable[object]]]]:
    """Give every operation on a PDF, by name."""
    yield "inspect", lambda: client.inspect(pdf)
    yield "repair", lambda: client.repair(pdf)
    yield "render", lambda: client.render(pdf, 1, None, _DPI)
    yield "find text", lambda: client.find_text(pdf, "Página", 1)
    yield "verify", lambda: client.verify(pdf, [])
    if roots := certificates_of(pdf):
        yield "verify with roots", lambda: client.verify(pdf, roots)


class Run:
    """Sends documents to a watched sandbox, one job at a time."""

    def __init__(self, server: WatchedSandbox) -> None:
        self._server = server
        self.names: list[str] = []
        self.loads: dict[str, list[LateLoad]] = {}

    async def ask(self, name: str, ask: Callable[[], Awaitable[object]]) -> None:
        """Run one job, and keep what it loads.

        A refusal is an answer like any other here.
        """
        with suppress(ApplianceError):
            await ask()
        self.names.append(name)
        if loads := self._server.new_loads():
            self.loads[name] = loads

    async def ask_everything(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Run every operation on each PDF."""
        for name, pdf in files:
            for operation, ask in operations(self._server.client, pdf):
                await self.ask(f"{operation} of {name}", ask)


def long_term(fonts: StampFonts) -> bytes:
    """A file at B-LT, with OCSP responses and CRLs."""
    now = SystemClock().now().replace(microsecond=0)
    return b_lt(pdfs.one_page(), LongTermPki(MovingClock(now)), fonts)


@pytest.fixture(
    scope="module",
    params=[
        "made",
        "corpora",
        pytest.param("all corpora", marks=pytest.mark.long),
    ],
)
async def watched(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    fonts: StampFonts,
) -> RunRecord:
    """All operations over one group of documents."""
    if request.param != "made" and not SHARED.is_dir():
        pytest.skip("the corpora do not stand beside this checkout")
    untraced = why_not_traced()
    trace = None if untraced else tmp_path_factory.mktemp("trace") / "calls"
    with watching_sandbox(trace) as server:
        run, client = Run(server), server.client
        await run.ask("ping", client.ping)
        if request.param == "made":
            await run.ask_everything(documents())
            await run.ask_everything([("B-LT", long_term(fonts))])
            for name, picture in pictures():
                await run.ask(f"logo {name}", partial(client.picture, picture))
            page = pdfs.one_page()
            await run.ask("inspect all", lambda: client.inspect_all([page, page]))
            await run.ask("stamp", lambda: client.render(page, 1, _STAMP, _DPI))
        else:
            each = 1 if request.param == "all corpora" else _SAMPLE
            await run.ask_everything(islice(corpora(SHARED), 0, None, each))
    return RunRecord(
        names=run.names,
        loads=run.loads,
        calls=[] if trace is None else late_calls(trace),
        font_folders=[] if trace is None else font_folders(trace),
        untraced=untraced,
    )


def font_folders(trace: Path) -> list[str]:
    """Lines of a trace that open the host's folder of fonts."""
    lines = trace.read_text("utf-8", errors="replace").splitlines()
    return [line for line in lines if '"/usr/share/fonts"' in line]


async def test_job_imports_and_opens_nothing(watched: RunRecord) -> None:
    """No operation on any document loads a module or opens a file."""
    assert watched.names
    assert {
        name: [str(one) for one in all_] for name, all_ in watched.loads.items()
    } == {}


async def test_job_makes_no_refused_call_and_names_no_file(watched: RunRecord) -> None:
    """Seccomp refuses no call of a job, and none names a path or a host."""
    if watched.untraced:
        pytest.skip(f"no process can be traced here: {watched.untraced}")

    assert len(watched.calls) == len(watched.names)
    by_name = zip(watched.names, watched.calls, strict=True)
    assert {name: calls for name, calls in by_name if calls} == {}


async def test_fonts_of_the_host_are_not_listed(watched: RunRecord) -> None:
    """Pages look the same on hosts with other fonts."""
    if watched.untraced:
        pytest.skip(f"no process can be traced here: {watched.untraced}")

    assert watched.font_folders == []


def test_watchers_see_a_load(tmp_path: Path) -> None:
    """A job that opens, imports and connects is seen by the hook and by strace."""
    untraced = why_not_traced()
    trace = None if untraced else tmp_path / "calls"
    with watching_sandbox(trace) as server:
        server.probe("powers")
        opened = {each.name for each in server.new_loads()}
        server.probe("late_import")
        imported = {each.name for each in server.new_loads() if each.event == "import"}

    assert "/etc/hostname" in opened
    assert imported == {"this"}
    if trace is None:
        pytest.skip(f"no process can be traced here: {untraced}")
    powers, late = late_calls(trace)
    assert any('"/etc/hostname"' in call for call in powers)
    assert any(call.startswith("socket(") for call in powers)
    assert late != []


def test_killed_job_is_waited_for(tmp_path: Path) -> None:
    """It is killed once, and its end wakes the template, which asks for it no more.

    Under strace a job takes long to end: of a template that looks again and again there
    would be thousands of calls. The first job's client leaves, the second one is late.
    """
    if untraced := why_not_traced():
        pytest.skip(f"no process can be traced here: {untraced}")
    trace = tmp_path / "calls"
    with watching_sandbox(trace, wall_s=1) as server:
        server.probe("powers")
        with suppress(ApplianceError, ConnectionError):
            server.probe("sleep")

    killed = kills(trace)
    assert len(killed) == len(set(killed)) == 2


def test_warning_opens_no_source_file(tmp_path: Path) -> None:
    """A warning, or an exception of a finalizer, is not printed with its line."""
    trace = None if why_not_traced() else tmp_path / "calls"
    with watching_sandbox(trace) as server:
        server.probe("complaints")
        loads = server.new_loads()

    assert loads == []
    assert trace is None or late_calls(trace) == [[]]


async def test_name_of_any_string_type_is_shown() -> None:
    """The signer's name is read from every string type of X.520."""
    with running_sandbox() as server:
        for kind, pdf in with_string_types():
            report = await server.client.verify(pdf, [])

            assert [each.signer for each in report.signatures] == [SIGNER], kind


@pytest.mark.parametrize("name", ["signed-email-in-subject", "signed-t61-name"])
async def test_signer_of_a_failing_file_is_shown(name: str) -> None:
    """An e-mail address or a TeletexString in a name hides no signer."""
    if not CP1252.is_dir():
        pytest.skip("the failing files do not stand beside this checkout")
    pdf = (CP1252 / f"{name}.pdf").read_bytes()
    with running_sandbox() as server:
        report = await server.client.verify(pdf, [])

    assert [each.signer for each in report.signatures] == ["Persona de Prueba"]


@pytest.mark.parametrize("kind", ["JPEG with EXIF", "JPEG of two", "PNG with EXIF"])
async def test_logo_with_further_data_is_taken(kind: str) -> None:
    """A turned photograph, or one with a preview, is a logo like any other."""
    with running_sandbox() as server:
        logo = await server.client.picture(dict(pictures())[kind])

    assert logo.deflated
