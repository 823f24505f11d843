"""Documents that an integrator's backend uploads, over HTTP.

Source: docs/integration.md "Documents of a backend"; RFC 4648, 6266, 7578, 8187.
"""

import base64
import hashlib
import re
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest

from appliance.domain.integrators.api_keys import ApiKeyScope
from tests.support.appliance import backends
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    at_once,
    head,
    let_in,
    problem,
    raw,
    signed_pdf,
)
from tests.support.documents import (
    drawn_freely_pdfs,
    hostile_pdfs,
    outside_content_pdfs,
    pdfs,
)
from tests.support.documents.validators import pdfsig
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S

PATH: Final = "/api/integration/documents"
PDF: Final = {"Content-Type": "application/pdf"}
BOTH: Final = (ApiKeyScope.REQUESTS_READ, ApiKeyScope.REQUESTS_WRITE)
FIELDS: Final = [
    "documentoId",
    "nombre",
    "sha256",
    "tamano",
    "paginas",
    "firmas",
    "certificacion",
    "campos",
    "medidas",
    "avisos",
    "reparacion",
    "creado",
    "vence",
]
SHORT: Final = ["documentoId", "nombre", "sha256", "tamano", "paginas"]


@dataclass(frozen=True)
class Backend:
    """An integrator's backend, and its key."""

    appliance: Appliance
    code: str
    key: str

    def call(self, method: str, path: str = "", /, **options: object) -> httpx.Response:
        """Call an address of the documents."""
        headers = {"X-Api-Key": self.key, **options.pop("headers", {})}  # type: ignore[dict-item]
        url = f"{self.appliance.settings.web.web_url}{PATH}{path}"
        return httpx.request(method, url, headers=headers, timeout=CALL_S, **options)  # type: ignore[arg-type]

    def upload(
        self, pdf: bytes, headers: dict[str, str] | None = None, **query: str
    ) -> httpx.Response:
        """Upload a PDF as it is."""
        sent = {**PDF, **(headers or {})}
        return self.call("POST", content=pdf, headers=sent, params=query)

    def ids(self) -> list[str]:
        """Of all documents, newest first."""
        return [each["documentoId"] for each in self.call("GET").json()]


def backend_of(
    appliance: Appliance, *scopes: ApiKeyScope, code: str | None = None
) -> Backend:
    """A new integrator's, or one with another key."""
    with backends.backend_of(appliance, *scopes, code=code) as made:
        return Backend(appliance, made.code, made.key.secret)


@pytest.fixture
def backend(appliance: Appliance) -> Backend:
    """One that may do all of it."""
    return backend_of(appliance, *BOTH)


@pytest.fixture
def other(appliance: Appliance) -> Backend:
    """Another integrator's."""
    return backend_of(appliance, *BOTH)


def test_upload_is_told_and_shown(backend: Backend) -> None:
    """In the words of a request; shown the same again, and its bytes are those."""
    pdf = pdfs.pages(2)

    made = backend.upload(pdf, nombre="Año nuevo.pdf")

    assert made.status_code == 201, made.text
    told = made.json()
    assert list(told) == FIELDS
    url = f"{backend.appliance.settings.web.web_url}{PATH}"
    assert made.headers["Location"] == f"{url}/{told['documentoId']}"
    assert "Idempotent-Replayed" not in made.headers
    assert told["sha256"] == hashlib.sha256(pdf).hexdigest()
    assert (told["nombre"], told["tamano"], told["paginas"], told["firmas"]) == (
        "Año nuevo.pdf",
        len(pdf),
        2,
        0,
    )
    assert len(told["medidas"]) == 2
    created, until_ = (datetime.fromisoformat(told[n]) for n in ("creado", "vence"))
    assert until_ - created == timedelta(days=30)
    shown = backend.call("GET", f"/{told['documentoId']}")
    assert shown.json() == told
    content = backend.call("GET", f"/{told['documentoId']}/content")
    assert content.content == pdf
    assert content.headers["Content-Type"] == "application/pdf"
    assert content.headers["ETag"] == f'"{told["sha256"]}"'
    assert "filename*=UTF-8''A%C3%B1o%20nuevo" in content.headers["Content-Disposition"]


def test_three_forms_of_a_body_come_to_the_same(backend: Backend) -> None:
    """As it is, as a part, as Base64; each with a name of its own, or the usual one."""
    pdf = pdfs.one_page("formas")
    text = base64.b64encode(pdf).decode()

    made = [
        backend.upload(pdf),
        backend.call("POST", files={"file": ("Acta ñ.pdf", pdf, "application/pdf")}),
        backend.call("POST", files={"file": (None, pdf)}),
        backend.call("POST", json={"nombre": "Acta ñ.pdf", "contenido": text}),
        backend.call("POST", json={"contenido": text}, params={"nombre": "q.pdf"}),
        backend.upload(pdf, {"Content-Type": "application/octet-stream"}),
    ]

    assert [each.status_code for each in made] == [201] * 6
    told = [each.json() for each in made]
    usual = "documento.pdf"
    assert [each["nombre"] for each in told] == [
        *(usual, "Acta ñ.pdf", usual, "Acta ñ.pdf", "q.pdf", usual),
    ]
    assert {each["sha256"] for each in told} == {hashlib.sha256(pdf).hexdigest()}
    assert backend.ids() == [each["documentoId"] for each in told][::-1]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("attachment; filename*=UTF-8''a%C3%B1o%20%E2%82%AC.pdf", "año €.pdf"),
        ("attachment; filename*=utf-8'es'A%C3%91O.PDF", "AÑO.PDF"),
        ("attachment; filename=\"x.pdf\"; filename*=UTF-8''y.pdf", "y.pdf"),
        ("ATTACHMENT;FileName*=UTF-8''y.pdf ; filename=x.pdf", "y.pdf"),
        ('attachment; filename="a \\" b.pdf"', None),
        ('attachment; filename="a b; c=d.pdf"', "a b; c=d.pdf"),
        ("attachment; filename=x.pdf", "x.pdf"),
        ("attachment", "documento.pdf"),
        ("inline; x=y", "documento.pdf"),
        ("attachment; filename*=UTF-8''an%CC%83o.pdf", "año.pdf"),
    ],
)
def test_name_of_a_header(backend: Backend, header: str, name: str | None) -> None:
    """`filename*` before `filename`; what no file may be called is refused."""
    made = backend.upload(pdfs.one_page(), {"Content-Disposition": header})

    if name is None:
        problem(made, 422, "FILENAME")
    else:
        assert made.json()["nombre"] == name


@pytest.mark.parametrize(
    "header",
    [
        "",
        "attachment; filename*=UTF-8''%C3.pdf",
        "attachment; filename*=ISO-8859-1''a%F1o.pdf",
        "attachment; filename*=UTF-8''a b.pdf",
        "attachment; filename*=a.pdf",
        "attachment; filename=a.pdf; filename=b.pdf",
        "attachment; filename*=UTF-8''a.pdf; Filename*=UTF-8''b.pdf",
        "attachment; filename=a b.pdf",
        'attachment; filename="a.pdf',
        "attachment filename=a.pdf",
        "attachment; filename",
        f"attachment; filename={'a' * 3000}.pdf",
    ],
)
def test_header_that_cannot_be_read_is_refused(backend: Backend, header: str) -> None:
    """Before the body is taken."""
    made = backend.upload(b"no PDF", {"Content-Disposition": header})

    assert problem(made, 400, "BAD_HEADER")["field"] == "Content-Disposition"


def test_header_of_other_characters_is_refused(backend: Backend) -> None:
    """Latin-1 or UTF-8: nobody knows; and two of them are two names."""
    known = f"X-Api-Key: {backend.key}", "Content-Type: application/pdf"
    for name in ("a\xf1o.pdf", "a\xc3\xb1o.pdf"):
        line = f'Content-Disposition: attachment; filename="{name}"'
        (answer,) = raw(
            backend.appliance,
            head(
                backend.appliance,
                f"POST {PATH} HTTP/1.1",
                *known,
                line,
                "Content-Length: 0",
            ),
        )
        assert (answer.status, answer.code) == (400, "BAD_HEADER")
    line = "Content-Disposition: attachment; filename=a.pdf"
    (answer,) = raw(
        backend.appliance,
        head(
            backend.appliance,
            f"POST {PATH} HTTP/1.1",
            *(*known, line, line, "Content-Length: 0"),
        ),
    )
    assert (answer.status, answer.code) == (400, "BAD_HEADER")


def test_name_of_a_part_in_another_code_page_is_read(backend: Backend) -> None:
    """As Windows writes it; a byte that is no letter there makes no name."""
    pdf = pdfs.one_page()
    kind = {"Content-Type": "multipart/form-data; boundary=x"}

    def sent(name: bytes) -> httpx.Response:
        head = b'Content-Disposition: form-data; name="file"; filename="%s"' % name
        body = b"--x\r\n" + head + b"\r\n\r\n" + pdf + b"\r\n--x--\r\n"
        return backend.call("POST", content=body, headers=kind)

    assert sent("Año.pdf".encode("latin-1")).json()["nombre"] == "Año.pdf"
    assert sent("5 € «1».pdf".encode("cp1252")).json()["nombre"] == "5 € «1».pdf"
    problem(sent(b"a\x81.pdf"), 422, "FILENAME")


@pytest.mark.parametrize(
    "name",
    [
        *("../a.pdf", "a/b.pdf", "C:\\a.pdf", "..\\a.pdf", ".a.pdf", "a.exe"),
        *("a\0.pdf", "a\n.pdf", "a\u202efdp.pdf", "\ufffd.pdf", f"{'a' * 252}.pdf"),
    ],
)
def test_name_that_no_file_may_have_is_refused(backend: Backend, name: str) -> None:
    """However it comes."""
    pdf = pdfs.one_page()
    body = {"nombre": name, "contenido": base64.b64encode(pdf).decode()}

    problem(backend.upload(pdf, nombre=name), 422, "FILENAME")
    made = backend.call("POST", json=body)
    if "\0" in name:
        problem(made, 400, "JSON_INVALID")
    else:
        problem(made, 422, "FILENAME")
    if name.isprintable():
        problem(backend.call("POST", files={"file": (name, pdf)}), 422, "FILENAME")
    assert backend.ids() == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "FIELD_MISSING"),
        ({"contenido": None}, "FIELD_INVALID"),
        ({"contenido": 7}, "FIELD_INVALID"),
        ({"contenido": "JVBE", "nombre": 7}, "FIELD_INVALID"),
        ({"contenido": "JVBE", "otro": 7}, "FIELD_UNKNOWN"),
        ({"contenido": "JVB"}, "FIELD_INVALID"),
        ({"contenido": "JVB="}, "FIELD_INVALID"),
        ({"contenido": "JV=="}, "FIELD_INVALID"),
        ({"contenido": "JVBE\n"}, "FIELD_INVALID"),
        ({"contenido": " JVBE"}, "FIELD_INVALID"),
        ({"contenido": "JVBE===="}, "FIELD_INVALID"),
        ({"contenido": "JQ==JVBE"}, "FIELD_INVALID"),
        ({"contenido": "_-8_"}, "FIELD_INVALID"),
        ({"contenido": "ñññ="}, "FIELD_INVALID"),
        ({"contenido": "data:application/pdf;base64,JVBE"}, "FIELD_INVALID"),
        ({"contenido": ""}, "FIELD_INVALID"),
        ({"contenido": "JVBE"}, "PDF_MALFORMED"),
    ],
    ids=str,
)
def test_json_is_read_strictly(
    backend: Backend, body: dict[str, object], code: str
) -> None:
    """Base64 as RFC 4648 has it, and nothing beside it."""
    made = backend.call("POST", json=body)

    assert made.json()["code"] == code
    assert made.status_code in {400, 422}


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"content": b"x"}, 415, "CONTENT_TYPE"),
        ({"content": b"x", "headers": {"Content-Type": "text/plain"}}, 415, None),
        ({"files": {"otro": b"x"}}, 400, "FIELD_UNKNOWN"),
        ({"files": [("file", b"x"), ("file", b"x")]}, 400, "FIELD_INVALID"),
        ({"files": {"file": b""}}, 422, "DOCUMENT_EMPTY"),
        ({"content": b"", "headers": PDF}, 422, "DOCUMENT_EMPTY"),
        ({"content": b"no PDF", "headers": PDF}, 422, "PDF_MALFORMED"),
        ({"content": b"[]", "headers": {"Content-Type": "application/json"}}, 400, ""),
        ({"content": b"x", "headers": PDF, "params": {"x": "y"}}, 400, "QUERY_UNKNOWN"),
        (
            {"content": b"x", "headers": PDF, "params": {"nombre": ["a", "b"]}},
            400,
            "QUERY_INVALID",
        ),
        (
            {"content": b"x", "headers": PDF, "params": {"nombre": ""}},
            400,
            "QUERY_INVALID",
        ),
        (
            {"content": b"x", "headers": {**PDF, "If-Match": "*"}},
            400,
            "BAD_HEADER",
        ),
        (
            {"content": b"x", "headers": {**PDF, "Idempotency-Key": "a b"}},
            400,
            "BAD_HEADER",
        ),
    ],
    ids=str,
)
def test_what_is_no_document_is_refused(
    backend: Backend, options: dict[str, object], status: int, code: str | None
) -> None:
    """And leaves nothing."""
    made = backend.call("POST", **options)

    told = problem(made, status, code or made.json()["code"])
    assert told["category"] == "fix_request"
    assert backend.ids() == []


def test_json_is_bounded_by_what_it_takes(
    limited_appliance: Appliance,
) -> None:
    """It is held several times while it is read: larger ones come as they are."""
    backend = backend_of(limited_appliance, *BOTH)
    limits = limited_appliance.settings
    most = (limits.documents.limit_bytes + 2 * limits.web.body_limit_bytes) // 4
    text = "A" * (most // 4 * 4)

    large = backend.call("POST", json={"contenido": text})
    problem(large, 413, "BODY_TOO_LARGE")
    pdf = pdfs.one_page().ljust(limits.documents.limit_bytes + 1)
    problem(backend.upload(pdf), 413, "DOCUMENT_TOO_LARGE")
    problem(backend.call("POST", files={"file": pdf}), 413, "DOCUMENT_TOO_LARGE")
    assert backend.ids() == []


def test_odd_documents_are_told_or_refused(
    appliance: Appliance, backend: Backend, signer: TestPerson
) -> None:
    """A signed one, one that opens without a password; one that does not."""
    request = appliance.new_request(signer, pdfs.one_page())
    with appliance.client(signer) as client:
        signed = signed_pdf(client, signer, request)
    with_signature = backend.upload(signed).json()
    scripted = backend.upload(pdfs.javascript()).json()
    damaged = backend.upload(pdfs.wrong_startxref()).json()
    locked = backend.upload(pdfs.encrypted(user="secreta"))

    assert with_signature["firmas"] == 1
    assert [each["codigo"] for each in scripted["avisos"]] == ["javascript"]
    assert damaged["reparacion"]["sha256Original"] != damaged["sha256"]
    problem(locked, 422, "PDF_PASSWORD_NEEDED")
    problem(backend.upload(hostile_pdfs.loop_of_previous()[:200]), 422, "PDF_MALFORMED")
    assert len(backend.ids()) == 3


def test_document_that_is_not_whole_is_refused(backend: Backend) -> None:
    """Content in another file, and a page of another document; nothing is kept.

    Source: docs/documents.md "Content from elsewhere".
    """
    for kind in ("content of a page", "reference in thirty forms", "encrypted"):
        refused = backend.upload(outside_content_pdfs.EXTERNAL[kind])
        members = problem(refused, 422, "PDF_EXTERNAL_CONTENT")
        assert members["category"] == "fix_request"
    whole = backend.upload(outside_content_pdfs.INSIDE["inline image"]).json()

    assert whole["avisos"] == []
    assert backend.ids() == [whole["documentoId"]]


def test_what_each_program_draws_as_it_likes_is_told(
    appliance: Appliance, backend: Backend, signer: TestPerson
) -> None:
    """By its code to the backend, in words to the signer, who signs it.

    Source: docs/documents.md "Findings".
    """
    for code, pdf in (
        ("alternate_images", drawn_freely_pdfs.ALTERNATE["as it is"]),
        ("missing_appearances", drawn_freely_pdfs.UNDRAWN["text field"]),
        ("unembedded_fonts", drawn_freely_pdfs.FOREIGN_FONTS["TrueType"]),
    ):
        told = backend.upload(pdf).json()
        assert [each["codigo"] for each in told["avisos"]] == [code]
        request = appliance.new_request(signer, pdf)
        with appliance.client(signer) as client:
            (shown,) = client.get(f"/solicitudes/{request}").json()["avisos"]
            signed = signed_pdf(client, signer, request)
        assert shown["codigo"] == code
        assert shown["texto"].startswith("El documento ")
        (signature,) = pdfsig(signed)
        assert signature.valid


def test_other_integrators_see_nothing(backend: Backend, other: Backend) -> None:
    """Not theirs, never there, no id at all, deleted: one answer."""
    mine = backend.upload(pdfs.one_page()).json()["documentoId"]
    absent = [
        *(mine[:-1] + ("0" if mine[-1] != "0" else "1"), mine.upper()),
        *("7", "a" * 300, "%F0%9F%A6%86"),
    ]

    for whose, wanted in [(other, mine), *((backend, each) for each in absent)]:
        for method, path in (
            ("GET", f"/{wanted}"),
            ("GET", f"/{wanted}/content"),
            ("DELETE", f"/{wanted}"),
        ):
            problem(whose.call(method, path), 404, "DOCUMENT_NOT_FOUND")
    assert other.ids() == []
    assert backend.ids() == [mine]

    gone = backend.call("DELETE", f"/{mine}")
    assert (gone.status_code, gone.content) == (204, b"")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        answer = backend.call(method, f"/{mine}{path}")
        problem(answer, 404, "DOCUMENT_NOT_FOUND")
    assert backend.ids() == []


def test_a_key_does_what_its_scopes_say(backend: Backend) -> None:
    """Reading and writing apart; without a key nothing."""
    made = backend.upload(pdfs.one_page()).json()["documentoId"]
    calls = {
        ApiKeyScope.REQUESTS_READ: [
            ("GET", ""),
            ("GET", f"/{made}"),
            ("GET", f"/{made}/content"),
        ],
        ApiKeyScope.REQUESTS_WRITE: [("POST", ""), ("DELETE", f"/{made}")],
    }
    nobody = Backend(backend.appliance, backend.code, "")
    for wanted, those in calls.items():
        others = [scope for scope in ApiKeyScope if scope is not wanted]
        without = backend_of(backend.appliance, *others, code=backend.code)
        for method, path in those:
            told = problem(without.call(method, path), 403, "API_KEY_SCOPE")
            assert wanted.value in str(told["detail"])
            problem(nobody.call(method, path), 401, "API_KEY_MISSING")
    assert backend.ids() == [made]


def test_pages_of_the_list(backend: Backend) -> None:
    """Newest first, some at a time; nothing else is taken for a cursor."""
    made = [
        backend.upload(pdfs.one_page(str(n))).json()["documentoId"] for n in range(5)
    ]

    seen, path, links = [], "?limite=2", 0
    while path:
        answer = backend.call("GET", path)
        assert all(list(e) == [*SHORT, "creado", "vence"] for e in answer.json())
        seen += [each["documentoId"] for each in answer.json()]
        url = re.match(r'<(.*)>; rel="next"', answer.headers.get("Link", ""))
        path = "" if url is None else f"?{urlsplit(url[1]).query}"
        links += url is not None
    assert (seen, links) == (made[::-1], 2)
    for query in (
        *("limite=0", "limite=201", "limite=x", "limite=2&limite=2", "cursor="),
        *("cursor=x", "cursor=20260101T000000.000000~x", "cursor=%00"),
        *("cursor=20260101T000000.000000~%00", f"cursor=99999~{made[0]}"),
    ):
        problem(backend.call("GET", f"?{query}"), 400, "QUERY_INVALID")
    problem(backend.call("GET", "?estado=x"), 400, "QUERY_UNKNOWN")


def test_repeated_upload_is_the_same_one(backend: Backend) -> None:
    """By its key, at once and later; with something else it is a conflict."""
    pdf = pdfs.one_page("una vez")
    key = {"Idempotency-Key": "una-vez"}

    def call() -> httpx.Response:
        return let_in(lambda: backend.upload(pdf, key, nombre="a.pdf"))

    made = at_once([call] * 10)

    assert [each.status_code for each in made] == [201] * 10, made[0].text
    assert len({each.text for each in made}) == 1
    assert len({each.headers["Location"] for each in made}) == 1
    repeated = [each.headers.get("Idempotent-Replayed") for each in made]
    assert sorted(map(str, repeated)) == ["None", *["true"] * 9]
    problem(backend.upload(pdf, key, nombre="b.pdf"), 409, "IDEMKEY_CONFLICT")
    problem(
        backend.upload(pdfs.one_page("otra"), key, nombre="a.pdf"),
        409,
        "IDEMKEY_CONFLICT",
    )
    assert backend.ids() == [made[0].json()["documentoId"]]


def test_body_is_not_read_before_the_key(backend: Backend) -> None:
    """Whoever has none is answered while nothing of the body was sent."""
    (answer,) = raw(
        backend.appliance,
        head(
            backend.appliance,
            f"POST {PATH} HTTP/1.1",
            *("X-Api-Key: x", "Content-Type: application/pdf"),
            "Content-Length: 40000000",
        ),
    )

    assert (answer.status, answer.code) == (401, "API_KEY_INVALID")


def test_connection_that_breaks_leaves_nothing(backend: Backend) -> None:
    """No row, no file, and nothing that counts for the next one."""
    folder = backend.appliance.settings.documents_dir
    before = set(folder.rglob("*.pdf"))
    pdf = pdfs.heavy(4, 4_000_000)
    address = urlsplit(backend.appliance.base_url)
    lines = (
        f"X-Api-Key: {backend.key}",
        "Content-Type: application/pdf",
        f"Content-Length: {len(pdf)}",
        "Idempotency-Key: k",
    )
    start = head(backend.appliance, f"POST {PATH} HTTP/1.1", *lines)
    with socket.create_connection((address.hostname or "", address.port or 0)) as sent:
        sent.sendall(start + pdf[: len(pdf) // 2])

    log = backend.appliance.log
    until(lambda: f"integrator={backend.code}" in log.read_text())
    assert backend.ids() == []
    assert set(folder.rglob("*.pdf")) == before
    whole = backend.upload(pdf, {"Idempotency-Key": "k"})
    assert "Idempotent-Replayed" not in whole.headers
    assert backend.ids() == [whole.json()["documentoId"]]
