"""Names under which signed documents are saved."""

import pytest

from appliance.domain.documents.inspected import NAME_BYTES, signed_name


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("contrato.pdf", "contrato-firmado.pdf"),
        ("Contrato.PDF", "Contrato-firmado.pdf"),
        ("contrato-firmado.pdf", "contrato-firmado.pdf"),
        ("contrato", "contrato-firmado.pdf"),
    ],
)
def test_copy_has_a_name_of_its_own(name: str, saved: str) -> None:
    """Once: what was signed before keeps its name."""
    assert signed_name(name) == saved


@pytest.mark.parametrize("letter", ["a", "ñ", "日", "😀"])
@pytest.mark.parametrize("length", [236, 242, 243, 244, 251])
def test_name_can_be_saved(letter: str, length: int) -> None:
    """A name of the largest length leaves room for the ending, and breaks no letter."""
    stem = (letter * length).encode()[:length].decode(errors="ignore")

    saved = signed_name(f"{stem}.pdf")

    assert len(saved.encode()) <= NAME_BYTES
    assert saved.endswith("-firmado.pdf")
    assert stem.startswith(saved.removesuffix("-firmado.pdf"))
    assert len(saved.encode()) > NAME_BYTES - 4 or stem in saved
