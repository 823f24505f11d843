"""One job: confined first, then one request, one answer, and the end of it.

Whatever goes wrong in here is a named refusal or the end of this process alone,
which the server answers for.
"""

import base64
import binascii
import logging
import mmap
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import pyseccomp
from pyhanko.pdf_utils.misc import PdfDecodeLimitError

from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import (
    REFUSALS,
    MessageInvalidError,
    Operation,
    damage_to_json,
    inspection_to_json,
    inspections_to_json,
    layout_from_json,
    picture_from_json,
    report_to_json,
    revoked_from_json,
    search_to_json,
    sizes_from_json,
    wanted_from_json,
)
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox import confinement
from worker.sandbox.inspection import inspect
from worker.sandbox.job_protocol import Answer, Request, answer_bytes, receive_request
from worker.sandbox.limits import SandboxLimits
from worker.sandbox.logo_pixels import logo_rows
from worker.sandbox.page_looks import are_drawn_alike
from worker.sandbox.render import render
from worker.sandbox.repair import repair
from worker.sandbox.text_search import find_text
from worker.sandbox.verify.chain_trial import try_chain
from worker.sandbox.verify.verify import verify

Probe = Callable[[bytes], Mapping[str, Any]]
"""A job of the tests': it is handed the document and answers JSON."""

EXIT_PROTOCOL = 3
"""The request did not follow the protocol; there is nothing to answer."""
EXIT_TOO_MUCH = 4
"""There was no memory left to answer with."""
_SHORTEST_PATH = 2
"""Certificates of a signer whose issuer is the root."""
_COMPARED = 2
"""Files of a comparison."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the template prepared for its jobs."""

    limits: SandboxLimits
    fonts: StampFonts
    rules: pyseccomp.SyscallFilter
    null: int
    """Descriptor of /dev/null."""
    template: int
    """The template's process."""
    probes: Mapping[str, Probe]


def run(connection: socket.socket, answered: mmap.mmap, tools: Tools) -> NoReturn:
    """Live as a job; called in a freshly forked process, and never returns.

    Args:
        connection: where the request comes from.
        answered: one shared byte, set before the first byte of the answer, so
            that the server knows whether it may still answer in our place.
        tools: what the template prepared.
    """
    code = 1
    try:
        code = _live(connection, answered, tools)
    except MemoryError:
        code = EXIT_TOO_MUCH
    finally:
        # No clean-up of the template's: its objects are not this process's.
        os._exit(code)


def _live(connection: socket.socket, answered: mmap.mmap, tools: Tools) -> int:
    """Confine, read, work, answer; return the exit code."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    logging.disable(logging.CRITICAL)  # libraries quote the file in their words
    confinement.die_with(tools.template)
    moved = confinement.confine_job(
        connection.fileno(), tools.null, tools.limits, tools.rules
    )
    connection.detach()
    with socket.socket(fileno=moved) as channel:
        channel.setblocking(True)  # noqa: FBT003 (the library's own)
        try:
            answer = answer_bytes(_answer(channel, tools))
        except MessageInvalidError:
            return EXIT_PROTOCOL
        answered[0] = 1
        channel.sendall(answer)
    return 0


def _answer(channel: socket.socket, tools: Tools) -> Answer | DocumentRefusedError:
    """Do the job; every failure of it is a refusal.

    Raises:
        MessageInvalidError: the request does not follow the protocol.
    """
    try:
        request = receive_request(channel, tools.limits.document_bytes)
        return _perform(request, tools)
    except MessageInvalidError:
        raise
    except ApplianceError as exc:
        return _refusal(exc)
    except (MemoryError, PdfDecodeLimitError) as exc:
        return _refused(ErrorCode.PDF_TOO_COMPLEX, exc)
    except Exception as exc:  # noqa: BLE001 (the outermost shell of a job)
        return _refused(ErrorCode.PDF_MALFORMED, exc)


def _refusal(error: ApplianceError) -> DocumentRefusedError:
    """Keep a refusal that has one of the sandbox's codes."""
    if isinstance(error, DocumentRefusedError) and error.code in REFUSALS:
        return error
    if error.code in REFUSALS:
        return DocumentRefusedError(error.code, params=error.params)
    return DocumentRefusedError(ErrorCode.PDF_MALFORMED, error.code.value)


def _refused(code: ErrorCode, exc: BaseException) -> DocumentRefusedError:
    """Refuse for an exception, named without what it quotes of the file."""
    return DocumentRefusedError(code, type(exc).__name__)


def _perform(request: Request, tools: Tools) -> Answer:
    """Do what was asked.

    Raises:
        DocumentRefusedError: by one of the sandbox's codes.
        MessageInvalidError: the operation or its parameters are none of ours.
    """
    work = _WORK.get(request.operation)
    if work is not None:
        return work(request, tools)
    if request.operation in tools.probes:
        return Answer(tools.probes[request.operation](request.pdf))
    raise MessageInvalidError


def _ping(request: Request, tools: Tools) -> Answer:
    del request, tools
    return Answer({})


def _inspect(request: Request, tools: Tools) -> Answer:
    return Answer(
        inspection_to_json(inspect(request.pdf, tools.limits.pages, tools.fonts))
    )


def _inspect_all(request: Request, tools: Tools) -> Answer:
    """Describe several small documents, which lie one after the other.

    Nothing is refused here: what cannot be described, for whatever reason, is left
    out, and its turn comes in a job of its own.

    Raises:
        MessageInvalidError: they are not as long as the request says.
    """
    found: list[Inspection | None] = []
    at = 0
    for size in sizes_from_json(request.params, len(request.pdf)):
        try:
            document = request.pdf[at : at + size]
            found.append(inspect(document, tools.limits.pages, tools.fonts))
        except Exception:  # noqa: BLE001 (whatever it is: that one is looked at alone)
            found.append(None)
        at += size
    return Answer(inspections_to_json(found))


def _repair(request: Request, tools: Tools) -> Answer:
    del tools
    repaired = repair(request.pdf)
    return Answer(damage_to_json(repaired.damage), repaired.pdf)


def _compare(request: Request, tools: Tools) -> Answer:
    """Draw a file and its copy, which lie one after the other.

    Raises:
        MessageInvalidError: they are not two, or not as long as the request says.
    """
    del tools
    sizes = sizes_from_json(request.params, len(request.pdf))
    if len(sizes) != _COMPARED:
        raise MessageInvalidError
    pdf, copy = request.pdf[: sizes[0]], request.pdf[sizes[0] :]
    return Answer({"alike": are_drawn_alike(pdf, copy)})


def _render(request: Request, tools: Tools) -> Answer:
    params = request.params
    stamp, drawn = params.get("stamp"), params.get("picture")
    layout = None if stamp is None else layout_from_json(stamp)
    picture = None if drawn is None else picture_from_json(drawn)
    page, dpi = _positive(params, "page"), _positive(params, "dpi")
    return Answer({}, render(request.pdf, page, dpi, layout, tools.fonts, picture))


def _verify(request: Request, tools: Tools) -> Answer:
    del tools
    roots = _certificates(request.params, "roots")
    stamp_roots = _certificates(request.params, "stampRoots")
    revoked = revoked_from_json(request.params.get("revoked"))
    return Answer(report_to_json(verify(request.pdf, roots, stamp_roots, revoked)))


def _try_chain(request: Request, tools: Tools) -> Answer:
    """Try a chain of certificates; there is no document.

    Raises:
        MessageInvalidError: there are not at least a signer's and a root.
    """
    del tools
    path = _certificates(request.params, "path")
    if len(path) < _SHORTEST_PATH:
        raise MessageInvalidError
    return Answer(report_to_json(try_chain(path)))


def _picture(request: Request, tools: Tools) -> Answer:
    del tools
    width, height, rows = logo_rows(request.pdf)
    return Answer({"width": width, "height": height}, rows)


def _find_text(request: Request, tools: Tools) -> Answer:
    del tools
    wanted, occurrence, page = wanted_from_json(request.params)
    return Answer(search_to_json(find_text(request.pdf, wanted, occurrence, page)))


_WORK: Mapping[str, Callable[[Request, Tools], Answer]] = {
    Operation.PING: _ping,
    Operation.INSPECT: _inspect,
    Operation.INSPECT_ALL: _inspect_all,
    Operation.REPAIR: _repair,
    Operation.COMPARE: _compare,
    Operation.RENDER: _render,
    Operation.VERIFY: _verify,
    Operation.TRY_CHAIN: _try_chain,
    Operation.PICTURE: _picture,
    Operation.FIND_TEXT: _find_text,
}


def _positive(params: Mapping[str, Any], name: str) -> int:
    """A whole number above zero.

    Raises:
        MessageInvalidError: it is none.
    """
    value = params.get(name)
    if not isinstance(value, int) or value < 1:
        raise MessageInvalidError
    return value


def _certificates(params: Mapping[str, Any], name: str) -> list[bytes]:
    """Certificates of a request, DER as yet unread.

    Raises:
        MessageInvalidError: they are not a list of Base64 strings.
    """
    given = params.get(name)
    if not isinstance(given, list):
        raise MessageInvalidError
    try:
        return [base64.b64decode(each, validate=True) for each in given]
    except (binascii.Error, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc
