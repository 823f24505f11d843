"""Documents made to break their reader: each has its named answer."""

import asyncio
from collections.abc import Iterator

import pytest

from appliance.domain.documents.inspected import FindingKind, Inspection
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from tests.support.documents import hostile_pdfs, pdfs, shadow_pdfs
from tests.support.documents.altered_pdfs import update
from tests.support.documents.hidden_content_pdfs import UNREADABLE
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

pytestmark = pytest.mark.full

JAVASCRIPT = b"<</S/JavaScript/JS(app.alert(1))>>"
LINK = b"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A %s>>"

REFUSED = {
    "empty": (b"", ErrorCode.DOCUMENT_EMPTY),
    "html": (pdfs.NOT_PDF["html"], ErrorCode.PDF_MALFORMED),
    "zip": (pdfs.NOT_PDF["zip"], ErrorCode.PDF_MALFORMED),
    "header alone": (pdfs.NOT_PDF["header_only"], ErrorCode.PDF_MALFORMED),
    "garbage": (bytes(range(256)) * 40, ErrorCode.PDF_MALFORMED),
    "late header": (bytes(600) + hostile_pdfs.plain(), ErrorCode.PDF_MALFORMED),
    "truncated": (pdfs.truncated(), ErrorCode.PDF_MALFORMED),
    "junk after the end": (pdfs.junk_after_end(), ErrorCode.PDF_MALFORMED),
    "wrong startxref": (pdfs.wrong_startxref(), ErrorCode.PDF_MALFORMED),
    "nested arrays": (hostile_pdfs.nested_arrays(), ErrorCode.PDF_MALFORMED),
    "catalog of itself": (hostile_pdfs.catalog_of_itself(), ErrorCode.PDF_MALFORMED),
    "loop of /Prev": (hostile_pdfs.loop_of_previous(), ErrorCode.PDF_MALFORMED),
    "tree loop": (hostile_pdfs.kids(b"2 0 R", 1), ErrorCode.PDF_MALFORMED),
    "tree loop after a page": (pdfs.page_tree_loop(), ErrorCode.PDF_MALFORMED),
    "one page twice": (hostile_pdfs.kids(b"3 0 R 3 0 R", 2), ErrorCode.PDF_MALFORMED),
    "direct page": (hostile_pdfs.kids(b"<</Type/Page>>", 1), ErrorCode.PDF_AMBIGUOUS),
    "field loop": (
        hostile_pdfs.plain(b"/AcroForm<</Fields[5 0 R]>>", o5=b"<</T(a)/Kids[5 0 R]>>"),
        ErrorCode.PDF_MALFORMED,
    ),
    "no pages": (pdfs.no_pages(), ErrorCode.PDF_NO_PAGES),
    "no page tree": (
        hostile_pdfs.build({1: b"<</Type/Catalog>>"}),
        ErrorCode.PDF_NO_PAGES,
    ),
    "deep tree": (hostile_pdfs.deep_tree(), ErrorCode.PDF_TOO_COMPLEX),
    "5,001 pages": (hostile_pdfs.many_pages(5_001), ErrorCode.PDF_TOO_COMPLEX),
    "200,000 kids": (
        hostile_pdfs.kids(b"3 0 R " * 200_000, 200_000),
        ErrorCode.PDF_TOO_COMPLEX,
    ),
    "xref stream bomb": (hostile_pdfs.xref_stream_bomb(), ErrorCode.PDF_TOO_COMPLEX),
    "content bomb": (hostile_pdfs.content_bomb(), ErrorCode.PDF_TOO_COMPLEX),
    "bomb in a bomb": (hostile_pdfs.content_bomb(times=2), ErrorCode.PDF_TOO_COMPLEX),
    "password, AES-256": (pdfs.encrypted("secret"), ErrorCode.PDF_PASSWORD_NEEDED),
    "password, RC4": (
        pdfs.encrypted("secret", revision=3),
        ErrorCode.PDF_PASSWORD_NEEDED,
    ),
    "own MAC": (hostile_pdfs.encrypted_with_mac(), ErrorCode.PDF_ENCRYPTED),
    "unknown encryption": (hostile_pdfs.unknown_encryption(), ErrorCode.PDF_ENCRYPTED),
    "dynamic XFA": (pdfs.xfa(dynamic=True), ErrorCode.PDF_XFA),
    "XFA to be drawn": (
        hostile_pdfs.xfa(b"<config><dynamicRender> required</dynamicRender></config>"),
        ErrorCode.PDF_XFA,
    ),
    "XFA and empty pages": (hostile_pdfs.empty_xfa(), ErrorCode.PDF_XFA),
}

FOUND = {
    "script at opening": (pdfs.javascript(), FindingKind.JAVASCRIPT),
    "script of a page": (
        hostile_pdfs.plain(page=b"/AA<</O %s>>" % JAVASCRIPT),
        FindingKind.JAVASCRIPT,
    ),
    "script of a link": (
        hostile_pdfs.plain(page=b"/Annots[5 0 R]", o5=LINK % JAVASCRIPT),
        FindingKind.JAVASCRIPT,
    ),
    "script of a link that is a destination too": (
        hostile_pdfs.plain(
            b"/OpenAction[5 0 R/Fit]", b"/Annots[5 0 R]", o5=LINK % JAVASCRIPT
        ),
        FindingKind.JAVASCRIPT,
    ),
    "script of a field": (
        hostile_pdfs.plain(
            b"/AcroForm<</Fields[5 0 R]>>", o5=b"<</T(a)/AA<</K %s>>>>" % JAVASCRIPT
        ),
        FindingKind.JAVASCRIPT,
    ),
    "script of a bookmark": (
        hostile_pdfs.plain(
            b"/Outlines 5 0 R",
            o5=b"<</First 6 0 R>>",
            o6=b"<</Title(a)/Next 5 0 R/A %s>>" % JAVASCRIPT,
        ),
        FindingKind.JAVASCRIPT,
    ),
    "script by name": (
        hostile_pdfs.plain(b"/Names<</JavaScript<</Names[(a) %s]>>>>" % JAVASCRIPT),
        FindingKind.JAVASCRIPT,
    ),
    "script after another action": (
        hostile_pdfs.plain(
            b"/OpenAction<</S/GoTo/D[3 0 R/Fit]/Next[<</S/Named>>5 0 R]>>",
            o5=JAVASCRIPT,
        ),
        FindingKind.JAVASCRIPT,
    ),
    "launch": (pdfs.launch(), FindingKind.LAUNCH_ACTION),
    "embedded file": (pdfs.embedded_file(), FindingKind.EMBEDDED_FILES),
    "attached file": (
        hostile_pdfs.annotated(b"/Subtype/FileAttachment/Rect[0 0 9 9]", drawn=True),
        FindingKind.EMBEDDED_FILES,
    ),
    "rich media": (
        hostile_pdfs.annotated(b"/Subtype/RichMedia/Rect[0 0 9 9]", drawn=True),
        FindingKind.RICH_MEDIA,
    ),
    "other file": (
        hostile_pdfs.plain(b"/OpenAction<</S/GoToR/F(other.pdf)>>"),
        FindingKind.EXTERNAL_LINK_ACTION,
    ),
    "form that is sent": (
        hostile_pdfs.plain(b"/AA<</WC<</S/SubmitForm/F(https://example.org)>>>>"),
        FindingKind.FORM_SUBMISSION,
    ),
    "form that is filled from elsewhere": (
        hostile_pdfs.plain(page=b"/Annots[5 0 R]", o5=LINK % b"<</S/ImportData/F(a)>>"),
        FindingKind.FORM_SUBMISSION,
    ),
    "address that opens by itself": (
        hostile_pdfs.plain(b"/OpenAction<</S/URI/URI(https://example.org)>>"),
        FindingKind.EXTERNAL_LINK_ACTION,
    ),
    "film that is played": (
        hostile_pdfs.plain(b"/OpenAction<</S/Rendition>>"),
        FindingKind.RICH_MEDIA,
    ),
    "file of a page": (
        hostile_pdfs.plain(page=b"/AF[<</Type/Filespec>>]"),
        FindingKind.EMBEDDED_FILES,
    ),
    "layers": (
        hostile_pdfs.plain(b"/OCProperties<</OCGs[]/D<<>>>>"),
        FindingKind.LAYERS,
    ),
    "hidden note": (
        hostile_pdfs.annotated(b"/Subtype/FreeText/F 2/Rect[9 9 90 90]/Contents(x)"),
        FindingKind.HIDDEN_ANNOTATIONS,
    ),
    "note seen on paper alone": (
        hostile_pdfs.annotated(b"/Subtype/Stamp/F 36/Rect[9 9 90 90]"),
        FindingKind.HIDDEN_ANNOTATIONS,
    ),
    "note of glass": (
        hostile_pdfs.annotated(b"/Subtype/FreeText/CA 0/Rect[9 9 90 90]/Contents(x)"),
        FindingKind.HIDDEN_ANNOTATIONS,
    ),
    "note without a size": (
        hostile_pdfs.annotated(b"/Subtype/FreeText/Rect[9 9 9 9]/Contents(x)"),
        FindingKind.HIDDEN_ANNOTATIONS,
    ),
    "field beside the page": (
        hostile_pdfs.annotated(b"/Subtype/Widget/FT/Tx/T(a)/Rect[300 9 390 90]"),
        FindingKind.OFF_PAGE_CONTENT,
    ),
    "field on no page": (
        hostile_pdfs.plain(
            b"/AcroForm<</Fields[5 0 R]>>", o5=b"<</T(a)/FT/Tx/V(I owe you)>>"
        ),
        FindingKind.OFF_PAGE_CONTENT,
    ),
    "fields drawn by whoever shows them": (
        hostile_pdfs.plain(b"/AcroForm<</Fields[]/NeedAppearances true>>"),
        FindingKind.APPEARANCES_LEFT_OPEN,
    ),
    "field over a field": (
        hostile_pdfs.annotated(
            b"/Subtype/Widget/FT/Tx/T(a)/Rect[9 9 90 90]",
            b"/Subtype/Widget/FT/Tx/T(b)/Rect[89 10 20 80]",
        ),
        FindingKind.OVERLAPPING_ANNOTATIONS,
    ),
    "filled square over a note": (
        hostile_pdfs.annotated(
            b"/Subtype/Square/IC[1 1 1]/Rect[0 0 90 90]",
            b"/Subtype/FreeText/Rect[9 9 40 40]/Contents(x)",
            drawn=True,
        ),
        FindingKind.OVERLAPPING_ANNOTATIONS,
    ),
    "text below a note": (
        shadow_pdfs.lettered(
            page=b"/Annots[6 0 R]",
            o6=shadow_pdfs.cover(b"/Subtype/Stamp"),
            o7=shadow_pdfs.WHITE,
        ),
        FindingKind.COVERED_TEXT,
    ),
    "text below a field": (
        shadow_pdfs.lettered(
            b"/AcroForm<</Fields[6 0 R]>>",
            b"/Annots[6 0 R]",
            o6=shadow_pdfs.cover(b"/Subtype/Widget/FT/Tx/T(a)"),
            o7=shadow_pdfs.WHITE,
        ),
        FindingKind.COVERED_TEXT,
    ),
    "text beside the page": (
        shadow_pdfs.lettered(page=b"/CropBox[0 0 200 100]"),
        FindingKind.OFF_PAGE_TEXT,
    ),
    "letters as large as the sky": (
        shadow_pdfs.lettered(
            page=b"/Annots[6 0 R]",
            o6=b"<</Type/Annot/Subtype/FreeText/Rect[-999999 -999999 999999 999999]"
            b"/AP<</N 7 0 R>>>>",
            o7=hostile_pdfs.NO_MARKS,
        ).replace(b"/F 24 Tf 20 150 Td", b"/F 99999 Tf 9 9 Td"),
        FindingKind.OFF_PAGE_TEXT,
    ),
    "page outside the tree": (
        hostile_pdfs.plain(o5=b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"),
        FindingKind.UNSHOWN_PAGES,
    ),
    "second document inside": (
        shadow_pdfs.second_document(),
        FindingKind.UNSHOWN_PAGES,
    ),
    "template of a page": (
        hostile_pdfs.plain(b"/Names<</Templates 5 0 R>>", o5=b"<</Type/Template>>"),
        FindingKind.UNSHOWN_PAGES,
    ),
    "content that was replaced": (
        update(
            hostile_pdfs.plain(),
            {4: hostile_pdfs.CONTENT.replace(b"100 100", b" 99  99")},
        ),
        FindingKind.REPLACED_CONTENT,
    ),
    "page that got other content": (
        update(
            hostile_pdfs.plain(),
            {3: hostile_pdfs.PAGE.replace(b"4 0 R", b"5 0 R"), 5: hostile_pdfs.CONTENT},
        ),
        FindingKind.REPLACED_CONTENT,
    ),
    "page whose list of content was replaced": (
        update(
            hostile_pdfs.plain(o5=b"[4 0 R]", o6=hostile_pdfs.CONTENT).replace(
                b"/Contents 4", b"/Contents 5"
            ),
            {5: b"[6 0 R]"},
        ),
        FindingKind.REPLACED_CONTENT,
    ),
    **{
        name: (content, FindingKind.UNEXAMINED_PARTS)
        for name, content in UNREADABLE.items()
    },
    "static XFA": (pdfs.xfa(dynamic=False), FindingKind.XFA_STATIC),
    "count too high": (pdfs.lying_count(), FindingKind.COUNT_LIES),
    "count zero": (hostile_pdfs.kids(b"3 0 R", 0), FindingKind.COUNT_LIES),
    "no count": (hostile_pdfs.kids(b"3 0 R"), FindingKind.COUNT_LIES),
    "owner's password": (
        pdfs.encrypted("", "owner"),
        FindingKind.ENCRYPTED_EMPTY_PASSWORD,
    ),
    "a little junk after the end": (hostile_pdfs.plain() + b"x\n", FindingKind.DAMAGED),
}

LAYERED = {
    "layer that is off": shadow_pdfs.layered(b"/OFF[5 0 R]"),
    "all layers off": shadow_pdfs.layered(b"/BaseState/OFF"),
    "layer for paper alone": shadow_pdfs.layered(
        b"/AS[<</Event/View/OCGs[5 0 R]/Category[/View]>>]",
        b"/Usage<</View<</ViewState/OFF>>/Print<</PrintState/ON>>>>",
    ),
}

WHOLE = hostile_pdfs.CONTENT.replace(b"f 0 ", b"f n ")
"""Content that leaves no operand to the next stream."""

HARMLESS = {
    "link to an address": hostile_pdfs.plain(
        page=b"/Annots[5 0 R]", o5=LINK % b"<</S/URI/URI(https://example.org)>>"
    ),
    "hidden link over a link": hostile_pdfs.annotated(
        b"/Subtype/Link/F 2/Rect[0 0 9 9]", b"/Subtype/Link/Rect[0 0 9 9]"
    ),
    "note that opens": hostile_pdfs.annotated(
        b"/Subtype/Text/Rect[9 9 20 20]",
        b"/Subtype/Popup/F 2/Rect[300 9 400 90]",
        drawn=True,
    ),
    "marked text": hostile_pdfs.annotated(
        b"/Subtype/Highlight/Rect[9 9 90 20]",
        b"/Subtype/Underline/Rect[9 9 90 20]",
        drawn=True,
    ),
    "frame around a note": hostile_pdfs.annotated(
        b"/Subtype/Square/Rect[0 0 90 90]",
        b"/Subtype/FreeText/Rect[9 9 40 40]/Contents(x)",
        drawn=True,
    ),
    "fields side by side": hostile_pdfs.annotated(
        b"/Subtype/Widget/FT/Tx/T(a)/Rect[9 9 90 29]",
        b"/Subtype/Widget/FT/Tx/T(b)/Rect[9 28 90 49]",
    ),
    "odd annotations": hostile_pdfs.annotated(
        b"/Subtype/FreeText/Rect[(a) /b]/F(x)/CA/x", b"/Rect[1 2 3]/Subtype 7"
    ),
    "text below a mark": shadow_pdfs.lettered(
        page=b"/Annots[6 0 R]",
        o6=shadow_pdfs.cover(b"/Subtype/Highlight/QuadPoints[0 9 9 9 0 0 9 0]"),
        o7=shadow_pdfs.WHITE.replace(b"1 g", b"1 1 0 rg")
        .replace(b"/BBox", b"/Resources<</ExtGState<</G<</BM/Multiply>>>>>>/BBox")
        .replace(b"stream\n", b"stream\n/G gs ")
        .replace(b"/Length 24", b"/Length 35"),
    ),
    "text below a field of glass": shadow_pdfs.lettered(
        b"/AcroForm<</Fields[6 0 R]>>",
        b"/Annots[6 0 R]",
        o6=shadow_pdfs.cover(b"/Subtype/Widget/FT/Tx/T(a)"),
        o7=shadow_pdfs.WHITE.replace(b" f ", b" n "),
    ),
    "types that are none": hostile_pdfs.plain(
        o5=b"<</Type<</A/B>>>>", o6=b"<</Type[/Page]>>", o7=b"<</Type(/Page)>>"
    ),
    "content written again as it was": update(
        hostile_pdfs.plain(), {3: hostile_pdfs.PAGE, 4: hostile_pdfs.CONTENT}
    ),
    "content that was added to": update(
        hostile_pdfs.plain(o4=WHOLE),
        {
            3: hostile_pdfs.PAGE.replace(b"4 0 R", b"[4 0 R 5 0 R]"),
            5: WHOLE,
        },
    ),
    "objects that are null": hostile_pdfs.plain(
        o5=b"null", o6=b"<</Type/Page/Length 3>>stream\nabc\nendstream"
    ),
    "place for a signature": hostile_pdfs.annotated(
        b"/Subtype/Widget/FT/Sig/T(a)/F 2/Rect[0 0 0 0]"
    ),
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here, which has to survive them."""
    with running_sandbox() as server:
        yield server
        assert server.process.poll() is None


@pytest.mark.parametrize("kind", REFUSED)
async def test_hostile_document_is_refused_by_name(
    sandbox: SandboxServer, kind: str
) -> None:
    """Each has its code, and the next job is served."""
    content, code = REFUSED[kind]

    with pytest.raises(DocumentRefusedError) as caught:
        await sandbox.client.inspect(content)

    assert caught.value.code is code, caught.value.reason
    await sandbox.client.ping()


@pytest.mark.long
async def test_page_that_nobody_can_draw_is_refused() -> None:
    """A million million drawings: CPU time or memory ends, whichever is first."""
    with running_sandbox(cpu_s=3) as server:
        with pytest.raises(DocumentRefusedError) as caught:
            await server.client.inspect(hostile_pdfs.nested_drawings())
        await server.client.ping()

    assert caught.value.code in {ErrorCode.PDF_TOO_COMPLEX, ErrorCode.PDF_MALFORMED}


async def described(sandbox: SandboxServer, pdf: bytes) -> Inspection:
    """What is said of a file, or of its copy where validators would mind it."""
    try:
        return await sandbox.client.inspect(pdf)
    except DocumentRefusedError as refusal:
        if refusal.code is not ErrorCode.PDF_UNVERIFIABLE:
            raise
    return await sandbox.client.inspect((await sandbox.client.repair(pdf)).pdf)


READ_DIFFERENTLY = {
    "page that is not where it should be",
    "page without an end",
    "page below too many others",
    "page by one reading alone",
    "former content that is not where it was",
    "former content of no length",
    "a little junk after the end",
}
"""Kinds that are refused by now, or written anew: nothing else is told of them."""


@pytest.mark.parametrize("kind", FOUND)
async def test_active_document_is_described(sandbox: SandboxServer, kind: str) -> None:
    """What a signer must be told is found, and one page is counted."""
    content, finding = FOUND[kind]
    if kind in READ_DIFFERENTLY:
        with pytest.raises(DocumentRefusedError) as caught:
            await sandbox.client.inspect(content)
        assert caught.value.code is ErrorCode.PDF_AMBIGUOUS
        return

    inspection = await described(sandbox, content)

    assert inspection.findings == (finding,)
    assert len(inspection.pages) == 1


@pytest.mark.parametrize("kind", LAYERED)
async def test_layer_that_is_not_shown_is_told(
    sandbox: SandboxServer, kind: str
) -> None:
    """Beside the layers themselves; one that is on is told of as a layer alone."""
    inspection = await sandbox.client.inspect(LAYERED[kind])
    shown = await sandbox.client.inspect(shadow_pdfs.layered(b"/ON[5 0 R]"))

    assert inspection.findings == (FindingKind.HIDDEN_LAYERS, FindingKind.LAYERS)
    assert shown.findings == (FindingKind.LAYERS,)


@pytest.mark.parametrize("kind", HARMLESS)
async def test_usual_document_has_nothing_to_tell(
    sandbox: SandboxServer, kind: str
) -> None:
    """What many documents have alarms nobody."""
    inspection = await described(sandbox, HARMLESS[kind])

    assert inspection.findings == ()


async def test_hostile_documents_are_not_drawn_or_verified_either(
    sandbox: SandboxServer,
) -> None:
    """The other operations answer too, by a picture, a report or a refusal."""
    contents = [content for content, _ in REFUSED.values()]

    drawn = await asyncio.gather(
        *(sandbox.client.render(content, 1, None, 48) for content in contents),
        *(sandbox.client.verify(content, []) for content in contents),
        return_exceptions=True,
    )

    failures = [each for each in drawn if isinstance(each, BaseException)]
    assert failures
    assert all(isinstance(each, DocumentRefusedError) for each in failures)


async def test_document_of_5000_pages_is_taken_in(sandbox: SandboxServer) -> None:
    """The limit itself is allowed."""
    inspection = await sandbox.client.inspect(hostile_pdfs.many_pages(5_000))

    assert len(inspection.pages) == 5_000
