"""A machine's folder of PINs, as an installation of 0.1.0 left it."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.settings import Settings, SettingsError
from appliance.settings.faults import read_tables
from hsm_config.provisioning.own_pins import OwnPins

ROLE: Final = 12345
"""User and group of the workers."""


@dataclass
class PinFolder:
    """A machine's folder of PINs, and the drop-in of its workers' unit."""

    root: Path
    reloads: list[list[str]] = field(default_factory=list)
    """Lines of the drop-in when systemd read it, and who may look at PINs then."""
    is_refused: bool = False
    """Whether systemd reads nothing, the next time."""

    @property
    def folder(self) -> Path:
        """Where PINs are root's own."""
        return self.root / "hsm"

    @property
    def drop_in(self) -> Path:
        """What hands them over."""
        return self.root / "units" / "pins.conf"

    def settings(
        self, *replicas: str, hsm: dict[str, Any] | None = None, **token: Any
    ) -> Settings:
        """With tokens `firma`, `pki` and others, whose PINs are in the folder."""

        def named(name: str) -> dict[str, Any]:
            return {
                "label": name,
                "pin_file": str(self.folder / f"{name}.pin"),
                **token,
            }

        profile = token.pop("profile", "softhsm2")
        members = [named(name) for name in replicas]
        return read_tables(
            {
                "trial": True,
                "data_dir": str(self.root),
                "run_dir": str(self.root),
                "database": {"url": "sqlite"},
                "hsm": {
                    "profile": profile,
                    "firma": named("firma"),
                    "pki": named("pki"),
                    "replicas": members,
                    **(hsm or {}),
                },
                "secrets": dict.fromkeys(
                    ("pepper_file", "data_key_file", "lookup_key_file"),
                    str(self.root / "none"),
                ),
            }
        )

    def pins(self, settings: Settings) -> OwnPins:
        """What is under test."""
        return OwnPins(
            settings, folder=self.folder, drop_in=self.drop_in, reload=self._reload
        )

    def _reload(self) -> None:
        if self.is_refused:
            self.is_refused = False
            msg = "systemctl daemon-reload: failed"
            raise SettingsError(msg)
        self.reloads.append([*self.handed(), *map(str, owned(self.folder))])

    def handed(self) -> list[str]:
        """What the drop-in gives the workers."""
        lines = self.drop_in.read_text().splitlines()
        return [line for line in lines if line.startswith("LoadCredential=")]

    def line(self, name: str) -> str:
        """Of the drop-in, for a file."""
        return f"LoadCredential={name}:{self.folder / name}"

    def put(self, *names: str, owner: int = ROLE) -> None:
        """Files of the workers' user, as 0.1.0 made them."""
        for name in names:
            path = self.folder / name
            path.write_text("1234\n")
            path.chmod(0o600)
            os.chown(path, owner, owner)


def owned(path: Path) -> tuple[int, int, str]:
    """User, group and mode of a file."""
    state = path.stat()
    return state.st_uid, state.st_gid, oct(stat.S_IMODE(state.st_mode))
