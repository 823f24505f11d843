"""An installation in a folder, opened as large as a test needs it.

    installation = Installation(folder, url, auth={"login_per_minute_account": 5})

    async with installation.record() as record: …      the record alone
    async with installation.services() as services: …  and every service over it
    async with installation.api() as api_services: …   and one role's application
    async with installation.console() as console: …
    async with installation.frame(assets) as frame: …

Each is made of the one before. `Appliance` is the whole: `rubrica up`.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from appliance.domain.ports import PdfInspector
from appliance.settings import Settings
from embed.assets import Assets
from tests.support.installation.api import API, ApiServices, open_api
from tests.support.installation.console import CONSOLE, Console, open_console
from tests.support.installation.frame import (
    FRAME,
    USE_CASES,
    Frame,
    FrameServices,
    open_frame,
    open_frame_services,
)
from tests.support.installation.record import CoreFixture, open_record
from tests.support.installation.services import Services, open_services
from tests.support.installation.settings import merged, settings_in


class Installation:
    """An installation that no process serves.

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
    ) -> AbstractAsyncContextManager[ApiServices]:
        """The services that the REST API is made of; signing is played."""
        return open_api(self.settings(API), inspector)

    def console(self, **changes: Any) -> AbstractAsyncContextManager[Console]:
        """The console, with one administrator.

        Args:
            changes: settings that are replaced as they are, such as `mail`.
        """
        return open_console(self.settings(CONSOLE).model_copy(update=changes))

    def frame_services(self) -> AbstractAsyncContextManager[FrameServices]:
        """The frame's use cases, with the integrator `acme`."""
        return open_frame_services(self.settings(USE_CASES))

    def frame(self, assets: Assets) -> AbstractAsyncContextManager[Frame]:
        """The embed role, with two registered origins."""
        return open_frame(self.settings(FRAME), assets)
