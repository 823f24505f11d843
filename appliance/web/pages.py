"""Pages for people: templates, in two languages, under a strict policy.

    pages = Pages(Path(__file__).parent / "templates")
    return pages.show("alta.html", lang, name=person.name)

A template says every sentence as `t("…")`, in English: a msgid. What it is
given is escaped; a value that it lacks is a fault, not an empty place.
"""

from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from jinja2 import DictLoader, Environment, StrictUndefined
from quart import Response

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web import brand, i18n

CSP: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""A page without scripts: styles from our own origin, nothing inline, no frame."""
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_STATIC_AGE_S: Final = 300


def read_templates(*folders: Path) -> DictLoader:
    """The templates of some folders and those below them, read once.

    They are compiled as they are first used, which takes the longest and needs no
    file: an upgrade replaces those while the role runs.

    Args:
        folders: where they are, first found first.
    """
    return DictLoader(
        {
            str(path.relative_to(folder)): path.read_text(encoding="utf-8")
            for folder in reversed(folders)
            for path in folder.rglob("*")
            if path.is_file()
        }
    )


class Pages:
    """The templates of one face.

    Args:
        folders: where they are, first found first.
        csp: policy of its pages.
    """

    def __init__(self, *folders: Path, csp: str = CSP) -> None:
        self._csp = csp
        self.templates = Environment(
            loader=read_templates(*folders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(self, template: str, lang: str, **values: object) -> str:
        """Fill a template.

        Args:
            template: file name.
            lang: `es` or `en`; the template has it too, with `t` and the `mark`.
            values: what it needs.
        """
        t = partial(i18n.translate, lang)
        page = self.templates.get_template(template)
        return page.render(lang=lang, t=t, mark=brand.MARK, **values)

    def show(
        self,
        template: str,
        lang: str,
        status: int = HTTPStatus.OK,
        **values: object,
    ) -> Response:
        """Answer with a page.

        Args:
            template: file name.
            lang: `es` or `en`.
            status: HTTP status.
            values: what the template needs.
        """
        return self.answer(self.render(template, lang, **values), lang, status)

    def answer(
        self, html: str | bytes, lang: str, status: int = HTTPStatus.OK
    ) -> Response:
        """Answer with a page that was made before.

        Args:
            html: as `render` makes it.
            lang: `es` or `en`.
            status: HTTP status.
        """
        response = Response(
            html,
            status=int(status),
            headers={"Content-Type": "text/html; charset=utf-8"},
        )
        response.headers["Content-Security-Policy"] = self._csp
        response.headers["Content-Language"] = lang
        response.headers["X-Robots-Tag"] = "noindex"
        return response


class StaticFiles:
    """The files that a face's pages load, read once.

    Args:
        folder: where they are.
        names: which of them are served beside the tokens and the icon that all
            faces share; no other is.
    """

    def __init__(self, folder: Path, *names: str) -> None:
        own = {name: (folder / name).read_bytes() for name in names}
        self._files = {
            name: (content, _TYPES[Path(name).suffix])
            for name, content in (brand.FILES | own).items()
        }

    def serve(self, name: str) -> Response:
        """Answer with a file.

        Args:
            name: as the address has it.

        Raises:
            ApplianceError: `NOT_FOUND`.
        """
        if name not in self._files:
            raise ApplianceError(ErrorCode.NOT_FOUND)
        content, media_type = self._files[name]
        return Response(
            content,
            headers={
                "Content-Type": media_type,
                "Cache-Control": f"public, max-age={_STATIC_AGE_S}",
            },
        )
