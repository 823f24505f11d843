"""The reference of figures is their own help."""

from tests.tools import metrics_doc


def test_metrics_page_is_current() -> None:
    """The committed page lists what there is."""
    assert metrics_doc.main(["--check"]) == 0


def test_stale_page_is_noticed() -> None:
    """A row that is gone comes back."""
    page = metrics_doc.TARGET.read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if "| `rubrica_role_up`" in line)
    assert metrics_doc.render(page.replace(row, "")) == page
