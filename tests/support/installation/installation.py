"""An installation in a folder, opened as large as a test needs it.

    installation = Installation(folder, url, auth={"login_per_minute_account": 5})

    async with installation.record() as record: …      the record alone
    async with installation.services() as services: …  and every service over it
    async with installation.api() as api_services: …   and one role's application
    async with installation.console() as console: …
    async with installation.frame(assets) as frame: …
    with installation.whole() as appliance: …          `rubrica up` in the folder

Each is made of the one before; the last has them in processes of its own.
"""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.domain.ports import PdfInspector
from appliance.settings import Settings
from tests.support.appliance.appliance import Appliance
from tests.support.installation.record import CoreFixture, open_record
from tests.support.installation.services import Services, open_services
from tests.support.installation.settings import merged, settings_in, toml

if TYPE_CHECKING:
    from embed.assets import Assets
    from tests.support.installation.api import ApiServices
    from tests.support.installation.console import Console
    from tests.support.installation.frame import Frame, FrameServices


class Installation:
    """An installation that is not open yet.

    Args:
        folder: for data and secrets.
        url: of the database.
        tables: settings, in place of the usual ones of what is opened.
    """

    def __init__(self, folder: Path, url: str = "sqlite", **tables: Any) -> None:
        self._folder = folder
        self._url = url
        self._tables = tables

    def settings(self, usual: dict[str, Any]) -> Settings:
        """Its settings, where those are usual that a test says nothing of."""
        tables = merged({"database": {"url": self._url}, **usual}, self._tables)
        return settings_in(self._folder, **tables)

    def record(self) -> AbstractAsyncContextManager[CoreFixture]:
        """The record."""
        return open_record(self.settings({}))

    def services(self) -> AbstractAsyncContextManager[Services]:
        """The services of a face, of a trial."""
        return open_services(self.settings({"trial": True}))

    def api(
        self, inspector: PdfInspector | None = None
    ) -> "AbstractAsyncContextManager[ApiServices]":
        """The services that the REST API is made of; signing is played.

        Args:
            inspector: the sandbox; None for one that sees one page in every PDF.
        """
        from tests.support.installation.api import API, open_api  # noqa: PLC0415 (heavy)

        return open_api(self.settings(API), inspector)

    def console(self, **changes: Any) -> "AbstractAsyncContextManager[Console]":
        """The console, with one administrator.

        Args:
            changes: settings that are replaced as they are, such as `mail`.
        """
        from tests.support.installation import console  # noqa: PLC0415 (heavy)

        settings = self.settings(console.CONSOLE).model_copy(update=changes)
        return console.open_console(settings)

    def frame_services(self) -> "AbstractAsyncContextManager[FrameServices]":
        """The frame's use cases, with the integrator `acme`."""
        from tests.support.installation import frame  # noqa: PLC0415 (heavy)

        return frame.open_frame_services(self.settings(frame.USE_CASES))

    def frame(self, assets: "Assets") -> "AbstractAsyncContextManager[Frame]":
        """The embed role, with two registered origins."""
        from tests.support.installation import frame  # noqa: PLC0415 (heavy)

        return frame.open_frame(self.settings(frame.FRAME), assets)

    def whole(self, **options: Any) -> AbstractContextManager[Appliance]:
        """The appliance, set up and started.

        Args:
            options: of `Appliance`.
        """
        more = toml(self._tables)
        return Appliance.made(self._folder, database=self._url, more=more, **options)
