"""Widgets in the structure tree of tagged files."""

import io
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest

from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_pdf
from tests.support.documents.software_signer import make_signer
from tests.support.documents.validators import pdfsig, pyhanko_verdicts
from worker.pades import SignaturePlan, method_for, prepare
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.inspection import inspect

SIGNER = make_signer()
ANA = StampSigner("Ana Núñez", "20267565393", "es")
Edit = Callable[[pikepdf.Pdf, Any], None]


def tagged(edit: Edit | None = None) -> bytes:
    """A tagged file: a document with a paragraph, and a parent tree in two levels."""
    with pikepdf.open(io.BytesIO(make_pdf([A4, A4]))) as pdf:
        root = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.StructTreeRoot))
        document = pdf.make_indirect(
            pikepdf.Dictionary(
                Type=pikepdf.Name.StructElem, S=pikepdf.Name.Document, P=root
            )
        )
        paragraph = pdf.make_indirect(
            pikepdf.Dictionary(
                Type=pikepdf.Name.StructElem, S=pikepdf.Name.P, P=document,
                Pg=pdf.pages[0].obj, K=0,
            )
        )  # fmt: skip
        document.K = paragraph
        root.K = document
        leaf = pdf.make_indirect(
            pikepdf.Dictionary(
                Limits=[0, 4], Nums=[0, pikepdf.Array([paragraph]), 4, paragraph]
            )
        )
        root.ParentTree = pdf.make_indirect(pikepdf.Dictionary(Kids=[leaf]))
        root.ParentTreeNextKey = 3
        pdf.Root.StructTreeRoot = root
        pdf.Root.MarkInfo = pikepdf.Dictionary(Marked=True)
        if edit is not None:
            edit(pdf, root)
        out = io.BytesIO()
        pdf.save(out)
    return out.getvalue()


def sign(
    pdf: bytes, fonts: StampFonts, *, page: int = 1, name: str = "Firma",
    visible: bool = True,
) -> bytes:  # fmt: skip
    """The file, signed."""
    params = SignParameters(page=page, visible=visible)
    plan = SignaturePlan(
        name, lay_out(params, ANA, SIGNED_AT, inspect(pdf, 10)), Restriction.NO_VALUE,
        SIGNED_AT, ANA.name, SIGNER.certificate, SIGNER.chain,
        method_for(SIGNER.certificate),
    )  # fmt: skip
    return pdf + SIGNER.complete(prepare(pdf, plan, fonts), plan)


def without_document(pdf: pikepdf.Pdf, root: Any) -> None:
    """Two elements at the top, neither a document."""
    root.K.S = pikepdf.Name.Sect
    other = pikepdf.Dictionary(Type=pikepdf.Name.StructElem, S=pikepdf.Name.Sect)
    root.K = pikepdf.Array([root.K, pdf.make_indirect(other)])


def without_tree(pdf: pikepdf.Pdf, root: Any) -> None:
    """No parent tree, as in a file without content that is tagged."""
    del pdf
    del root.ParentTree, root.ParentTreeNextKey


@pytest.mark.parametrize("edit", [None, without_document, without_tree])
@pytest.mark.parametrize("visible", [True, False])
def test_widget_is_a_form_element_of_a_tagged_file(
    edit: Edit | None, fonts: StampFonts, *, visible: bool
) -> None:
    """Found from above, and by its key; what was there stays."""
    original = tagged(edit)

    pdf = sign(original, fonts, page=2 if visible else 1, visible=visible)

    with pikepdf.open(io.BytesIO(pdf)) as opened:
        root = opened.Root.StructTreeRoot
        page = opened.pages[1 if visible else 0].obj
        widget = page.Annots[-1]
        top = root.K
        form = top[-1] if isinstance(top, pikepdf.Array) else top.K[-1]
        assert (str(form.S), form.Pg.objgen) == ("/Form", page.objgen)
        assert form.K.Obj.objgen == widget.objgen
        assert form.P.objgen == (root if isinstance(top, pikepdf.Array) else top).objgen
        tree = pikepdf.NumberTree(root.ParentTree)
        assert tree[int(widget.StructParent)].objgen == form.objgen
        assert int(root.ParentTreeNextKey) == int(widget.StructParent) + 1
        assert page.Tabs == "/S"
        assert str(widget.TU) == "Ana Núñez"
        if edit is None:
            assert [int(key) for key in tree] == [0, 4, 5]
            assert [kid.S for kid in top.K] == ["/P", "/Form"]
    (status,) = pyhanko_verdicts(pdf, [SIGNER.root])
    assert status.good
    assert [one.valid for one in pdfsig(pdf)] == [True]


def test_second_signature_leaves_the_tree_alone(fonts: StampFonts) -> None:
    """For the first one would look broken to validators."""
    once = sign(tagged(), fonts)

    twice = sign(once, fonts, name="Otra")

    assert all(status.good for status in pyhanko_verdicts(twice, [SIGNER.root]))
    with pikepdf.open(io.BytesIO(twice)) as opened:
        assert len(opened.Root.StructTreeRoot.K.K) == 2
        assert "/StructParent" not in opened.pages[0].Annots[-1]


def loop(pdf: pikepdf.Pdf, root: Any) -> None:
    """A parent tree below itself."""
    del pdf
    root.ParentTree.Kids = pikepdf.Array([root.ParentTree])


def odd(pdf: pikepdf.Pdf, root: Any) -> None:
    """A parent tree without values."""
    del pdf
    root.ParentTree.Kids[0].Nums = pikepdf.Array([0])


def direct(pdf: pikepdf.Pdf, root: Any) -> None:
    """A tree that nothing can refer to."""
    del root
    pdf.Root.StructTreeRoot = pikepdf.Dictionary(K=pikepdf.Array([]))


@pytest.mark.parametrize("edit", [loop, odd, direct])
def test_broken_tree_is_left_alone_and_the_file_signed(
    edit: Edit, fonts: StampFonts
) -> None:
    """It is no reason not to sign."""
    pdf = sign(tagged(edit), fonts)

    (status,) = pyhanko_verdicts(pdf, [SIGNER.root])
    assert status.good
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        assert "/StructParent" not in opened.pages[0].Annots[-1]


def test_untagged_file_stays_untagged(fonts: StampFonts) -> None:
    """Nothing of a structure is made up."""
    with pikepdf.open(io.BytesIO(sign(make_pdf(), fonts))) as opened:
        assert "/StructTreeRoot" not in opened.Root
        assert "/Tabs" not in opened.pages[0]
