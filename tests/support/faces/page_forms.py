"""Forms of a page, read as a browser reads them.

(form,) = FormReader("/admin/login", answer.text).forms
await console.send_form(form.path, {**form.hidden, "name": "marta"})
"""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class PageForm:
    """A form that a page posts, and the fields that a browser would send."""

    page: str
    """Path of the page that shows it."""
    path: str
    """Path that it is sent to."""
    hidden: dict[str, str] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    required: set[str] = field(default_factory=set)
    """Those of them that have to be filled in."""
    file: str = ""
    """Name of the field for a file; empty for none."""


class FormReader(HTMLParser):
    """Posted forms of a page.

    Args:
        path: of the page, which forms without an address are sent to.
        page: HTML.
    """

    def __init__(self, path: str, page: str) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._path = path
        self._open: PageForm | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a form or a field."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            target = given.get("action") or self._path
            posted = given.get("method") == "post"
            self._open = PageForm(self._path, target) if posted else None
            self.forms += [self._open] if self._open else []
        elif self._open and tag in {"input", "select", "textarea"}:
            self._field(self._open, given)

    def _field(self, form: PageForm, given: dict[str, str]) -> None:
        kind, name = given.get("type"), given["name"]
        if kind == "hidden":
            form.hidden[name] = given["value"]
        elif kind == "file":
            form.file = name
        else:
            form.shown.append(name)
            if given.get("aria-required") == "true":
                form.required.add(name)

    def handle_endtag(self, tag: str) -> None:
        """Leave a form."""
        if tag == "form":
            self._open = None
