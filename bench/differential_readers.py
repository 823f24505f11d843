"""Text and pictures of a PDF by poppler, PDFium, MuPDF and pdf.js, under limits."""

import base64
import io
import itertools
import math
import resource
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pypdfium2
from PIL import Image, ImageChops
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Page, Route, sync_playwright

from tests.support.browsers.browsers import CHROMIUM
from tests.support.processes.bounded_calls import BoundedCalls, TooLateError

DPI: Final = 36
PAGES: Final = 20
"""Most pages of a file that are looked at."""
_SECONDS: Final = 20
_BYTES: Final = 1_500_000_000
_CELLS: Final = (12, 16)
_CLEARLY: Final = 60
_LOOSE_PX: Final = 2
_SIDE_PX_MOST: Final = 2_000
_VENDORED: Final = Path(__file__).parents[1] / "appliance/web/vendor/files/pdfjs"
_SITE: Final = "http://differential.test/"
_SCRIPT: Final = """async ([bytes, scale, most]) => {
  const pdfjs = await import('/pdf.min.mjs');
  pdfjs.GlobalWorkerOptions.workerSrc = '/pdf.worker.min.mjs';
  const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
  const worker = globalThis.worker ??= new pdfjs.PDFWorker();
  const task = pdfjs.getDocument({data, worker, standardFontDataUrl: '/standard_fonts/',
    cMapUrl: '/cmaps/', iccUrl: '/iccs/', wasmUrl: '/wasm/', useWasm: false});
  const read = async () => {
    const pdf = await task.promise, texts = [], pictures = [];
    for (let at = 1; at <= Math.min(pdf.numPages, most); at++) {
      const page = await pdf.getPage(at), viewport = page.getViewport({scale});
      const canvas = document.createElement('canvas');
      canvas.width = Math.ceil(viewport.width);
      canvas.height = Math.ceil(viewport.height);
      await page.render({canvas, viewport}).promise;
      texts.push((await page.getTextContent()).items.map((i) => i.str).join(' '));
      pictures.push(canvas.toDataURL('image/png'));
    }
    return [texts, pictures];
  };
  const late = new Promise((yes) => setTimeout(() => yes('late'), 15000));
  const got = await Promise.race([read().catch(() => null), late]);
  await Promise.race([task.destroy(), late]);
  if (got !== 'late') return got;
  worker.destroy();
  globalThis.worker = undefined;
  return null;
}"""
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Shown:
    """Text and pictures of a file's first pages.

    Args:
        text: of these pages, in the order of drawing where a reader has it.
        pictures: of the pages, in order; None for a page that cannot be drawn.
    """

    text: str
    pictures: tuple[Image.Image | None, ...] = field(repr=False)


class Readers:
    """Three readers for one thread, in a process that is kept, and of its children."""

    def __init__(self) -> None:
        self._calls = BoundedCalls(2 * _SECONDS + 5)

    def close(self) -> None:
        """End the process."""
        self._calls.close()

    def show(self, pdf: bytes) -> dict[str, Shown | None]:
        """Ask each reader; None where it reads nothing, or runs into a limit."""
        with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
            file.write(pdf)
            file.flush()
            return {name: self._shown(call, file.name) for name, call in _CALLS.items()}

    def _shown(self, call: Callable[[str], Shown | None], name: str) -> Shown | None:
        try:
            return self._calls.call(_limited, call, name)
        except (TooLateError, RuntimeError):
            return None


def _limited(call: Callable[[str], Shown | None], name: str) -> Shown | None:
    """Make a call in the process of the caller, whose memory it limits."""
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    return call(name)


def _pdfium(name: str) -> Shown | None:
    texts: list[str] = []
    pictures: list[Image.Image | None] = []
    try:
        document = pypdfium2.PdfDocument(Path(name).read_bytes())
        if document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE:
            document.init_forms()
        count = len(document)
    except (pypdfium2.PdfiumError, ValueError):
        return None
    for at in range(min(count, PAGES)):
        text, picture = "", None
        # "Crop exceeds page dimensions" is a ValueError.
        with suppress(pypdfium2.PdfiumError, ValueError, MemoryError):
            page = document[at]
            text = page.get_textpage().get_text_bounded()
            picture = page.render(scale=_scale(page.get_size())).to_pil().convert("RGB")
        texts.append(text)
        pictures.append(picture)
    return Shown("\n".join(texts), tuple(pictures)) if pictures else None


def _scale(size: tuple[float, float]) -> float:
    """Return pixels for a point: fewer for a very large page."""
    return min(DPI / 72, _SIDE_PX_MOST / max(*size, 1))


def _run(*command: str) -> bytes | None:
    """Return the output of a reader, None if it fails; it inherits the limits."""
    try:
        ran = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    # MuPDF ends with 1 if any object was wrong, and shows the page nevertheless.
    return ran.stdout if ran.returncode in {0, 1} else None


def _poppler(name: str) -> Shown | None:
    last = str(PAGES)
    drawn = _run("pdftoppm", "-cropbox", "-r", str(DPI), "-l", last, name)
    if not drawn:
        return None
    text = _run("pdftotext", "-raw", "-cropbox", "-l", last, name, "-")
    return _shown(text, drawn)


def _mupdf(name: str) -> Shown | None:
    pages = f"1-{PAGES}"
    drawn = _run("mutool", "draw", "-r", str(DPI), "-F", "ppm", "-o", "-", name, pages)
    if not drawn:
        return None
    text = _run("mutool", "draw", "-F", "text", "-o", "-", name, pages)
    return _shown(text, drawn)


_CALLS: Final = {"poppler": _poppler, "PDFium": _pdfium, "MuPDF": _mupdf}


def _shown(text: bytes | None, drawn: bytes | None) -> Shown | None:
    pictures = tuple(_ppm(drawn or b""))
    if not pictures:
        return None
    return Shown((text or b"").decode("utf-8", "replace"), pictures)


def _ppm(data: bytes) -> Iterator[Image.Image]:
    """Yield pictures that follow one another."""
    at = 0
    while data.startswith(b"P6\n", at):
        end = at
        lines: list[bytes] = []
        while len(lines) < 3:
            start, end = end, data.index(b"\n", end) + 1
            if not data.startswith(b"#", start):
                lines.append(data[start : end - 1])
        width, height = map(int, lines[1].split())
        at = end + width * height * 3
        if len(data) < at:
            return
        yield Image.frombytes("RGB", (width, height), data[end:at])


class PdfJs:
    """pdf.js in a Chromium page, with the files that the iframe serves."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def show(self, pdf: bytes) -> Shown | None:
        """Return what it shows; None if it reads nothing."""
        encoded = base64.b64encode(pdf).decode()
        try:
            got = self._page.evaluate(_SCRIPT, [encoded, DPI / 72, PAGES])
        except BrowserError:
            return None
        if not got or not got[1]:
            return None
        pictures = (
            Image.open(io.BytesIO(base64.b64decode(each.partition(",")[2])))
            for each in got[1]
        )
        return Shown("\n".join(got[0]), tuple(one.convert("RGB") for one in pictures))


@contextmanager
def pdfjs() -> Iterator[PdfJs]:
    """Start a Chromium with pdf.js."""
    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.route(f"{_SITE}**", _serve)
        page.goto(_SITE)
        try:
            yield PdfJs(page)
        finally:
            browser.close()


def _serve(route: Route) -> None:
    """Answer with a vendored file."""
    name = route.request.url.removeprefix(_SITE)
    path = _VENDORED / name
    if not name:
        route.fulfill(body="<!doctype html>", content_type="text/html")
    elif path.is_file():
        kind = (
            "text/javascript" if path.suffix == ".mjs" else "application/octet-stream"
        )
        route.fulfill(body=path.read_bytes(), content_type=kind)
    else:
        route.fulfill(status=404)


def disagreeing(shown: Mapping[str, Shown | None]) -> set[tuple[str, str]]:
    """Name the pairs of readers that show clearly different pages.

    One that reads nothing contradicts no other.
    """
    read = [(name, each) for name, each in shown.items() if each is not None]
    return {
        (one[0], other[0])
        for one, other in itertools.combinations(read, 2)
        if differ_clearly(one[1], other[1])
    }


def differ_clearly(one: Shown, other: Shown) -> bool:
    """Say whether two readers show different pages, beyond their ways of drawing."""
    if len(one.pictures) != len(other.pictures):
        return True
    return any(
        a is not None and b is not None and _most(a, b) > _CLEARLY
        for a, b in zip(one.pictures, other.pictures, strict=True)
    )


def _most(one: Image.Image, other: Image.Image) -> int:
    cells = [each.resize(_CELLS, Image.Resampling.BOX) for each in (one, other)]
    channels = ImageChops.difference(*cells).split()
    return max(max(channel.tobytes()) for channel in channels)


def differences(
    before: Shown | None,
    after: Shown | None,
    stamps: Mapping[int, Sequence[Box]],
    stamp_text: str,
) -> list[str]:
    """Name what one reader shows differently after signing, outside the stamps.

    Args:
        before: of the file that the signer was shown.
        after: of the signed file.
        stamps: by 1-based page, in parts of its width and height, from left and top.
        stamp_text: text of all of them, which may come in addition.
    """
    if before is None and after is None:
        return []
    if before is None or after is None:
        return ["read only before signing" if before else "read only after signing"]
    found = []
    if not _same_text(before.text, after.text, stamp_text):
        found.append("text")
    if len(before.pictures) != len(after.pictures):
        return [*found, "number of pages"]
    for at, (a, b) in enumerate(zip(before.pictures, after.pictures, strict=True), 1):
        if (a is None) is not (b is None):
            found.append(f"page {at} drawn only once")
        elif a is None or b is None:
            continue
        elif a.size != b.size:
            found.append(f"size of page {at}")
        else:
            boxes = stamps.get(at, ())
            if ImageChops.difference(_masked(a, boxes), _masked(b, boxes)).getbbox():
                found.append(f"picture of page {at}")
    return found


def _masked(picture: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    masked = picture.copy()
    across, down = picture.size
    for x0, y0, x1, y1 in boxes:
        place = (
            math.floor(x0 * across) - _LOOSE_PX,
            math.floor(y0 * down) - _LOOSE_PX,
            math.ceil(x1 * across) + _LOOSE_PX,
            math.ceil(y1 * down) + _LOOSE_PX,
        )
        masked.paste((0, 0, 0), place)
    return masked


def _same_text(before: str, after: str, stamps: str) -> bool:
    """Say whether a text is the former one, with letters of stamps added at most.

    All of the former text stays in its order; a reader may put a stamp's lines anywhere
    between.
    """
    was, now = "".join(before.split()), "".join(after.split())
    added: Counter[str] = Counter()
    at = 0
    for letter in now:
        if at < len(was) and letter == was[at]:
            at += 1
        else:
            added[letter] += 1
    return at == len(was) and added <= Counter("".join(stamps.split()))
