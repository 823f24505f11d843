"""The reference of settings is the settings' own docstrings."""

from tests.tools import settings_doc


def test_settings_page_is_current() -> None:
    """The committed page says what the model says."""
    assert settings_doc.main(["--check"]) == 0


def test_settings_page_documents_every_key() -> None:
    """No key is without a meaning."""
    rows = [line for line in settings_doc.render().splitlines() if "| `" in line]

    assert len(rows) > 40
    assert [row for row in rows if row.endswith("|  |")] == []
