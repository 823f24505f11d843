"""Belief in a published activation key: whose word a front takes, and for what.

The rows come from the database, which whoever writes to it may fill. Belief rests on
three files of this machine alone: the worker identities, the admitted hosts, and the
oldest format that counts.

- Format 2: an admitted host's own key signed it, and a pinned worker identity did.
- Format 1: a pinned worker identity signed it. It counts while this machine's file says
  so, and only of a host that is not admitted: for an admitted one there is no way back,
  and for none where the list of admitted hosts is damaged.

Source: design §4 "What stands beside the seal"; docs/keys.md.
"""

from enum import StrEnum
from typing import Final

from appliance.domain.keys.host_statements import HostStatement
from appliance.domain.ports import AdmittedHostKeys, OldestFormat, WorkerIdentities
from appliance.domain.signing.activation import (
    ActivationFormat,
    ActivationKey,
    format_of,
    key_statement,
)

_REMEMBERED: Final = 1000
"""Most keys whose signatures are not checked again."""


class KeyStanding(StrEnum):
    """An activation key, in the eyes of one front."""

    BELIEVED = "believed"
    NOT_ADMITTED = "not_admitted"
    """Its host is not admitted on this machine."""
    OTHER_HOST_KEY = "other_host_key"
    """Its host is admitted by another key than the one that signed."""
    UNKNOWN_IDENTITY = "unknown_identity"
    """No pinned worker identity signed it."""
    OLD_FORMAT = "old_format"
    """It is of a format that does not count for its host any more."""


class KeyBelief:
    """Decides which activation keys unlock keys may be sealed to.

    Args:
        identities: those that are pinned.
        admitted: hosts that are admitted.
        formats: the oldest format that counts.
        installation: the setting of that name.
    """

    def __init__(
        self,
        identities: WorkerIdentities,
        admitted: AdmittedHostKeys,
        formats: OldestFormat,
        installation: str,
    ) -> None:
        self._identities = identities
        self._admitted = admitted
        self._formats = formats
        self._installation = installation
        self._believed: set[ActivationKey] = set()
        self._by: object = None
        """Versions of the files by which `_believed` was found."""

    @property
    def oldest(self) -> ActivationFormat:
        """The oldest format that counts here.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the file that says so cannot be read.
        """
        return self._formats.oldest

    def standing(self, key: ActivationKey) -> KeyStanding:
        """Return whether a key is believed, or what it lacks.

        Args:
            key: as it was published.
        """
        by = (
            self._identities.version,
            self._admitted.version,
            self._formats.oldest,
        )
        if by != self._by or len(self._believed) >= _REMEMBERED:
            # A host that was removed just now is not believed any longer.
            self._believed.clear()
            self._by = by
        if key in self._believed:
            return KeyStanding.BELIEVED
        if format_of(key.epoch) is ActivationFormat.FIRST:
            found = self._of_first_format(key)
        else:
            found = self._of_whole_consent(key)
        if found is KeyStanding.BELIEVED:
            self._believed.add(key)
        return found

    def _of_first_format(self, key: ActivationKey) -> KeyStanding:
        if self._formats.oldest > ActivationFormat.FIRST:
            return KeyStanding.OLD_FORMAT
        if self._admitted.key_of(key.host) is not None or not self._admitted.is_whole:
            return KeyStanding.OLD_FORMAT
        statement = key_statement(self._installation, key.host, key.epoch, key.public)
        if not self._identities.signed(key.identity, statement, key.signature):
            return KeyStanding.UNKNOWN_IDENTITY
        return KeyStanding.BELIEVED

    def _of_whole_consent(self, key: ActivationKey) -> KeyStanding:
        host_key = self._admitted.key_of(key.host)
        if host_key is None:
            return KeyStanding.NOT_ADMITTED
        statement = HostStatement(
            self._installation,
            key.host,
            host_key,
            key.epoch,
            key.public,
            key.identity,
        )
        if key.host_signature is None or not self._admitted.signed(
            key.host, statement.by_host(), key.host_signature
        ):
            return KeyStanding.OTHER_HOST_KEY
        if not self._identities.signed(
            key.identity, statement.by_identity(), key.signature
        ):
            return KeyStanding.UNKNOWN_IDENTITY
        return KeyStanding.BELIEVED
