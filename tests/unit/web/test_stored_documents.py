"""Stored documents go out by one function, so that each of them is read by ranges."""

import ast
from collections.abc import Iterator
from pathlib import Path

import appliance
from appliance.web import document_response

ROOT = Path(appliance.__file__).parents[1]
FACES = ("admin_ui", "appliance", "embed")
ALONE = Path(document_response.__file__)


def answers_with_pdf(path: Path) -> Iterator[int]:
    """Lines of a module that answer with a PDF by `file_response`."""
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if "file_response(" in text else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "file_response":
            media_type = ast.unparse(node.args[1])
            if media_type in {"PDF", "'application/pdf'"}:
                yield node.lineno


def test_stored_documents_are_answered_by_ranges_everywhere() -> None:
    """A face that answers with a PDF otherwise would serve it whole or not at all."""
    found = {
        path: list(answers_with_pdf(path))
        for face in FACES
        for path in (ROOT / face).rglob("*.py")
    }

    assert len(found[ALONE]) == 2
    assert [path for path, lines in found.items() if lines] == [ALONE]
