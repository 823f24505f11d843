"""Every page of a populated console, in both languages: no code is left to read."""

import re
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import update

from admin_ui.words import LANGUAGE_COOKIE, WHY
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.worker_store import WorkerStore
from appliance.signing.signing_order import PROCESS_ENDED
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation

ANA, LUIS = "20055361682", "20267565393"
_CODE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_WIRE = re.compile(
    r"\b(en_proceso|en_espera|[a-z]+_[a-z]+\.[a-z_]+|[a-z]+[A-Z][A-Za-z]+)\b"
)
_UNSEEN = frozenset({"script", "style", "title", "pre"})
_ENDINGS = {
    RequestState.FAILED: (ErrorCode.SIGNING_FAILED, ErrorCode.STORAGE_FULL),
    RequestState.PENDING: (ErrorCode.ACTIVATION_EXPIRED, ErrorCode.HSM_UNAVAILABLE),
    RequestState.CANCELLED: (PROCESS_ENDED, ""),
    RequestState.EXPIRED: (PROCESS_ENDED, ""),
    RequestState.REJECTED: ("No estoy de acuerdo.", "No es mío."),
    RequestState.WAITING: ("", ""),
    RequestState.IN_PROGRESS: ("", ""),
}


class Seen(HTMLParser):
    """What a person reads of a page, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.links: list[str] = []
        self._unseen: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter what is not read: code to copy, technical detail, colours."""
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        technical = tag == "details" and given.get("class") == "technical"
        if self._unseen or tag in _UNSEEN or technical:
            self._unseen += [tag] if tag in {*_UNSEEN, "details"} else []

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        if self._unseen and self._unseen[-1] == tag:
            self._unseen.pop()

    def handle_data(self, data: str) -> None:
        """Keep what is read."""
        if not self._unseen:
            self.texts.append(unescape(data))


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with requests in every state and audit rows of every kind."""
    async with Installation(tmp_path).console() as made:
        await made.front.integrators.create("operator", "acme", "ACME S.A.")
        ana = await made.person(ANA)
        await made.person(LUIS, "Luis Peña", enrolled=False)
        await made.services.sessions.note_blocked("acme", "https://otro.example")
        engines = open_engines(made.services.settings)
        request = tables.signature_request
        for state, reasons in _ENDINGS.items():
            for reason in reasons:
                number = await made.request(ANA)
                async with engines.writer.begin() as connection:
                    await connection.execute(
                        update(request)
                        .where(request.c.id == number)
                        .values(state=state.value, reason=str(reason))
                    )
                async with made.services.store.write() as transaction:
                    transaction.audit.add(
                        AuditEvent(
                            EventKind.REQUEST_FAILED,
                            "system",
                            request=RequestId(number),
                            detail={"reason": str(reason), "person": ana},
                        )
                    )
        await engines.dispose()
        async with made.services.store.write() as transaction:
            for kind in EventKind:
                transaction.audit.add(AuditEvent(kind, "system"))
            for code in (*ErrorCode, *WHY):
                detail: dict[str, object] = {"code": str(code)}
                transaction.audit.add(
                    AuditEvent(EventKind.TASK_FAILED, "worker:1", detail=detail)
                )
            for hsm in ("ready", "unavailable", "left", "pin", "none"):
                slot = f"signing/{hsm}/0"
                status = WorkerStatus(
                    slot, "p", made.clock.now(), hsm, "firma: CKR_TOKEN_NOT_PRESENT"
                )
                await WorkerStore(transaction).beat(status)
        await made.sign_in()
        yield made


@pytest.mark.parametrize("lang", ["es", "en"])
async def test_no_page_has_a_code(console: Console, lang: str) -> None:
    """All that links lead to from the first page on, errors among them."""
    console.cookies[LANGUAGE_COOKIE] = lang
    waiting, seen = ["/admin/", "/admin/nada", "/admin/requests?since=x"], set()
    faults: list[str] = []
    while waiting:
        path = waiting.pop()
        parts = urlsplit(path)
        # One page of a list stands for those of its filters.
        name = re.sub(r"[0-9a-f-]{36}", "id", parts.path)
        key = (name, "cursor" in parts.query, bool(parts.query))
        if key in seen or not parts.path.startswith("/admin") or parts.netloc:
            continue
        seen.add(key)
        answer = await console.get(path)
        assert answer.status in {200, 303, 400, 404, 422}, path
        if "text/html" not in answer.headers.get("Content-Type", ""):
            continue
        page = Seen(answer.text)
        waiting += page.links
        for text in page.texts:
            found = {*_CODE.findall(text), *_WIRE.findall(text)}
            faults += [f"{path}: {one!r} in {text.strip()!r}" for one in found]
        if lang == "en":
            words = {state.value for state in RequestState}
            faults += [f"{path}: {w}" for t in page.texts for w in {t.strip()} & words]

    assert faults == []
    assert len(seen) > 45
