"""`rubrica hsm pins`: PINs in files of root's own, which systemd hands to the workers.

No role can read `/etc/rubrica/hsm`, nor put anything there: what systemd reads as root
and gives to a role must not be that role's to choose. A drop-in of the workers' unit
names each PIN (`LoadCredential=`), and the command `rubrica` gives `rubrica hsm` the
same ones. SO PINs lie there too; `rubrica hsm init` and `hsm join` alone are given
them.

Source: systemd.exec(5), "Credentials"; docs/hsm.md, "PINs".
"""

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from appliance.secrets.pin_places import PIN_FOLDER, FreePlaces, tokens_of
from appliance.settings import ReplicaSettings, Settings, SettingsError, TokenSettings
from hsm_config.pkcs11.pin import make_pin, replace_file
from hsm_config.profile import load_profile
from hsm_config.provisioning.pin_folder import check_folder, check_links

DROP_IN: Final = Path("/etc/systemd/system/rubrica-signing@.service.d/pins.conf")
_SYSTEMD: Final = Path("/run/systemd/system")
"""There where systemd runs. Source: sd_booted(3)."""
_HEAD: Final = """\
# Written by `rubrica hsm pins`: PINs, which are root's own. Lines of your own go into a
# file beside it.
[Service]
"""
_LINE: Final = "LoadCredential="
_CLOSED: Final = (0, 0, 0o700)
"""User, group and mode of the folder once it is root's own."""
_UNREAD: Final = 0o710
"""Its mode until systemd has read the drop-in: the group reads its PINs on."""


def _reload() -> None:
    """Have systemd read the units again, where it runs: it reads them as it starts.

    Raises:
        SettingsError: it does not.
    """
    if not _SYSTEMD.is_dir():
        return
    command = ["systemctl", "daemon-reload"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    if done.returncode != 0:
        msg = f"systemctl daemon-reload: failed\n{done.stderr.strip()}"
        raise SettingsError(msg)


class OwnPins:
    """The folder of the PINs, and the drop-in that hands them over.

    Runs as root. Every step may be repeated, and a worker that starts between two of
    them has its PIN: by its own user, or by systemd.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        folder: Path = PIN_FOLDER,
        drop_in: Path = DROP_IN,
        reload: Callable[[], None] = _reload,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            settings: of the installation, or of another HSM that it moves to: lines
                of the one stay where the other's are added.
            folder: of the PINs; those elsewhere are left alone.
            drop_in: of the workers' unit.
            reload: has systemd read that.
        """
        self._settings = settings
        self._folder = folder
        self._drop_in = drop_in
        self._reload = reload

    def take(self, *, make: bool = False, asked: bool = False) -> list[str]:
        """See to it that the PINs are root's own and handed over.

        Args:
            make: make those that are missing, where `rubrica hsm init` would.
            asked: the user PINs are asked for at the terminal: make none of them.

        Returns:
            What was done, and what has to be done by hand, for people; empty: nothing.

        Raises:
            SettingsError: a PIN is missing that a token was made with, one is a link,
                something else lies in the folder (nothing was changed then), or, to
                make some, the folder is not there.
            OSError: the disk refuses.
        """
        check_folder(self._settings, self._folder, self._drop_in.parent.parent)
        if not self._folder.is_dir():
            if not make:
                return list(self._left())
            msg = f"{self._folder}: is not there; rubrica setup makes it"
            raise SettingsError(msg)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        handle = os.open(self._folder, flags)
        try:
            self._close_to_writers(handle)
            told = list(self._make(asked=asked) if make else ())
            told += self._hand_over(handle)
            return [*told, *self._own(handle), *self._left()]
        finally:
            os.close(handle)

    def _close_to_writers(self, handle: int) -> None:
        """Let whose folder it was read its PINs on, and put nothing there any more.

        Raises:
            SettingsError: a PIN's file is a link, which led systemd anywhere.
        """
        if _owned(handle) != _CLOSED:
            os.fchown(handle, 0, -1)
            os.fchmod(handle, _UNREAD)
        # Once more: up to here its owner could put one there.
        check_links(self._settings, self._folder)

    def _ours(self) -> Iterator[tuple[str, TokenSettings]]:
        """Tokens whose PINs are to lie in the folder, by the key of the settings."""
        for key, token in tokens_of(self._settings):
            if token.pin_file.parent == self._folder:
                yield key, token

    def _make(self, *, asked: bool) -> Iterator[str]:
        """PINs and SO PINs of tokens that are to be made.

        Raises:
            SettingsError: the PIN of a token that was made already is missing.
        """
        quirks = load_profile(self._settings.hsm.profile).quirks
        for key, token in self._ours():
            has_file = token.pin_source == "file" and not asked
            if has_file and token.pin_file.exists():
                continue
            was_made = not quirks.makes_tokens or self._was_made(token)
            if was_made and has_file:
                raise SettingsError(_lost(key, token, by_us=quirks.makes_tokens))
            if was_made:
                continue
            # The SO PIN first: where there is a PIN, it was made.
            if not token.so_pin_file.exists():
                make_pin(token.so_pin_file, quirks.pin_chars)
                yield f"made  SO PIN file {token.so_pin_file}"
            if has_file:
                make_pin(token.pin_file, quirks.pin_chars)
                yield f"made  PIN file {token.pin_file}"

    def _was_made(self, token: TokenSettings) -> bool:
        """Whether a token has its PIN already, for all that can be seen from here."""
        if _line(token) in self._lines():
            return True
        return self._settings.root_file.exists() and not isinstance(
            token, ReplicaSettings
        )

    def _lines(self) -> list[str]:
        """Those of the drop-in as it is."""
        if not self._drop_in.exists():
            return []
        lines = self._drop_in.read_text("utf-8").splitlines()
        return [line for line in lines if line.startswith(_LINE)]

    def _hand_over(self, handle: int) -> Iterator[str]:
        """The drop-in: a line for each PIN that is there, or was.

        Raises:
            SettingsError: systemd does not read it; the next run has it try again.
        """
        before = self._lines()
        lines = [
            _line(token)
            for _, token in self._ours()
            if token.pin_source == "file"
            # One that is lost is missed: by systemd, which starts no worker.
            and (token.pin_file.exists() or _line(token) in before)
        ]
        # Others are of an HSM that the installation moves to, or from.
        ours = {_line(token) for _, token in self._ours()}
        lines += [
            line
            for line in before
            if line not in ours and Path(line.partition(":")[2]).exists()
        ]
        is_new = set(lines) != set(before)
        if is_new:
            # The mode says, to a run after one that was killed, that it is unread.
            os.fchmod(handle, _UNREAD)
            self._drop_in.parent.mkdir(parents=True, exist_ok=True)
            text = _HEAD + "".join(f"{line}\n" for line in lines)
            replace_file(self._drop_in, text.encode(), 0o644)
        if self._drop_in.exists() and not _is_own(handle):
            self._reload()
        if is_new:
            yield f"made  {self._drop_in}"

    def _own(self, handle: int) -> Iterator[str]:
        """Files and folder become root's own."""
        for name in _not_own(handle):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=handle)
            try:
                os.fchown(file, 0, 0)
                os.fchmod(file, 0o600)
            finally:
                os.close(file)
            yield f"taken {self._folder / name}: root's own"
        was = _owned(handle)
        os.fchown(handle, 0, 0)
        os.fchmod(handle, _CLOSED[2])
        if was not in {_CLOSED, (0, 0, _UNREAD)}:
            yield f"taken {self._folder}: root's own"

    def _left(self) -> Iterator[str]:
        """PINs elsewhere, which the workers' user reads itself."""
        free = FreePlaces(self._settings, self._folder)
        for key, token in tokens_of(self._settings):
            if token.pin_source == "file" and token.pin_file.parent != self._folder:
                place = free.free_for(token).pin_file
                yield (
                    f"left  {token.pin_file}: the workers' user reads it; move it to "
                    f"{place}, name it there in hsm.{key}.pin_file, and run this again"
                )


def _line(token: TokenSettings) -> str:
    """What hands a token's PIN over, under its file's name."""
    return f"{_LINE}{token.pin_file.name}:{token.pin_file}"


def _lost(key: str, token: TokenSettings, *, by_us: bool) -> str:
    """What to do about a PIN that is not there, of a token that is."""
    remedy = (
        "no other opens the token; bring it back from a backup"
        if by_us
        else "the HSM's owner made it with the token; put it there, alone on a line"
    )
    return f"{token.pin_file} (hsm.{key}.pin_file): is not there: {remedy}"


def _is_own(handle: int) -> bool:
    """Whether a folder and its files are root's own, and systemd was told of all."""
    return _owned(handle) == _CLOSED and not _not_own(handle)


def _not_own(handle: int) -> list[str]:
    """Names of files in a folder that others may read, or own."""
    states = {
        name: os.stat(name, dir_fd=handle, follow_symlinks=False)
        for name in sorted(os.listdir(handle))
    }
    return [
        name
        for name, state in states.items()
        if stat.S_ISREG(state.st_mode) and _owner(state) != (0, 0, 0o600)
    ]


def _owned(handle: int) -> tuple[int, int, int]:
    """User, group and mode of what is open."""
    return _owner(os.fstat(handle))


def _owner(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)
