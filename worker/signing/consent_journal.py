"""A host's journal of the seals that it opened: each consent is used once, and in time.

The database decides neither: a row that is put back, or whose times are moved, opens
nothing that this host saw end. The journal is a file beside the activation keys, in
memory and shared by the signing workers of the host under the folder's lock. It dies
with the keys that it guards, at a reboot; a killed worker leaves it whole.

    begun   an activation was about to be opened, for the first time before its claim_by
    intent  the key is about to sign digests of documents, by the claim of that fence
    over    the key phase of documents has ended: signed, or given up
    ended   nothing of it is to be signed any more: it never opens again

Source: design §4 "What stands beside the seal"; docs/keys.md "The journal of a host".
"""

import errno
import json
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
)
from appliance.domain.signing.activation import Claim
from appliance.domain.vocab import ItemState
from worker.signing.activation_keys import JOURNAL, ActivationFolder

_log = structlog.get_logger(__name__)
_NEW: Final = f".{JOURNAL}.new"
_LAYER: Final = "journal"
_KEPT: Final = timedelta(minutes=30)
"""How long an end is remembered at the most: longer than any activation key is kept."""
_LEAST_BYTES: Final = 65_536
"""Below this size the journal is not written anew."""
_READ_BYTES: Final = 1_048_576
_ID_CHARACTERS: Final = 64
"""Most of an id: those of fronts have 36, and SQLite would keep any number."""
_HEADER_BYTES: Final = 47
"""Of the first line."""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """One digest that a key is to sign, and what makes the same one again."""

    digest: str
    """Hex."""
    signed_at: datetime
    """Signing time that the document states, aware."""
    token_bytes: int
    """Room that it leaves for a timestamp."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Latest attempt to sign a document."""

    fence: int
    use: KeyUse

    def fields(self, seq: int) -> list[object]:
        """The part of a line that says it."""
        at = self.use.signed_at.isoformat()
        return [seq, self.use.digest, at, self.use.token_bytes]


@dataclass(slots=True)
class _Entry:
    """What the host knows of one activation, or HSM task."""

    until: int
    """When it may be forgotten, in milliseconds since 1970."""
    begun: int | None = None
    """When it was first about to be opened here, likewise; None: never."""
    attempts: dict[int, _Attempt] = field(default_factory=dict)
    """By document, how a claim last was about to use the key."""
    over: set[int] = field(default_factory=set)
    """Documents whose key phase has ended."""
    ended: bool = False

    def lines(self, name: str) -> Iterator[list[object]]:
        """The lines that say all of it.

        Args:
            name: id of the activation or task.
        """
        if self.ended:
            yield ["ended", name, self.until]
            return
        if self.begun is not None:
            yield ["begun", name, self.until, self.begun]
        for seq, attempt in self.attempts.items():
            fields = [attempt.fields(seq)]
            yield ["intent", name, self.until, attempt.fence, fields]
        if self.over:
            yield ["over", name, self.until, sorted(self.over)]


class ConsentJournal:
    """What the workers of a host opened, and what they saw end.

    Args:
        folder: of the host's activation keys.
        clock: the time, by which a consent is in time or not.
        key_phase: time for it, plus a second a document.
    """

    def __init__(
        self, folder: ActivationFolder, clock: Clock, key_phase: timedelta
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._key_phase = key_phase
        self._entries: dict[str, _Entry] = {}
        self._header = b""
        """First line of the file that was read last, which no other file has."""
        self._read = 0
        """Bytes of it that were read."""
        self._compact_at = _LEAST_BYTES

    def begin(self, claim: Claim) -> None:
        """Note that an activation is about to be opened, if it still may be.

        Call it before its seal is opened: a worker that is killed in between has used
        no key. `claim_by` and the number of documents are those of the rows, and hold
        only if the seal opens, which is bound to them.

        Args:
            claim: the caller's.

        Raises:
            ActivationInvalidError: this host saw it end.
            ApplianceError: `ACTIVATION_EXPIRED`: its time is over;
                `STORE_UNAVAILABLE`: the journal cannot be read or written.
        """
        with self._opened() as file:
            now = self._clock.now()
            entry = self._entries.get(claim.id)
            if entry is not None and entry.ended:
                raise ActivationInvalidError(_LAYER)
            begun = None if entry is None else entry.begun
            if begun is None:
                if now >= claim.claim_by:
                    raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
                begun = _ms(now)
            elif _ms(now) >= self._phase_end(begun, claim):
                raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
            until = max(_ms(claim.claim_by), self._phase_end(begun, claim))
            # Rows that no seal fits may name any time, and any number of documents.
            until = min(until, _ms(now + _KEPT))
            if entry is None or entry.begun is None or entry.until < until:
                self._note(file, ["begun", claim.id, until, begun])

    def attempted(self, claim: Claim) -> Mapping[int, KeyUse]:
        """Return what interrupted claims were about to sign, by document.

        Whatever is signed again has to be the same: a value that was made, and that
        no row has, would else be a second signature.

        Args:
            claim: the caller's.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        with self._opened():
            entry = self._entries.get(claim.id)
            attempts = {} if entry is None else entry.attempts
            return {seq: attempt.use for seq, attempt in attempts.items()}

    def intend(self, claim: Claim, uses: Mapping[int, KeyUse]) -> frozenset[int]:
        """Note that the key is about to be used for documents of an open activation.

        A document is refused if its key phase has ended, if an earlier claim was about
        to sign another digest for it, or if a claim of the same or a higher fence was
        about to use the key for it: then this claim is stale, or the fence in the row
        was put back.

        Args:
            claim: the caller's.
            uses: by the place of each document in it, what is to be signed.

        Returns:
            Those for which the key must not be used.

        Raises:
            ApplianceError: `ACTIVATION_EXPIRED`: the key phase is over;
                `STORE_UNAVAILABLE`.
        """
        with self._opened() as file:
            entry = self._entries.get(claim.id)
            if entry is None or entry.begun is None or entry.ended:
                return frozenset(uses)
            if _ms(self._clock.now()) >= self._phase_end(entry.begun, claim):
                raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
            refused = frozenset(
                seq
                for seq, use in uses.items()
                if seq in entry.over
                or (
                    (known := entry.attempts.get(seq)) is not None
                    and (known.fence >= claim.fence or known.use.digest != use.digest)
                )
            )
            allowed = [
                _Attempt(claim.fence, use).fields(seq)
                for seq, use in uses.items()
                if seq not in refused
            ]
            if allowed:
                line = ["intent", claim.id, entry.until, claim.fence, allowed]
                self._note(file, line)
            return refused

    def over(self, claim: Claim, seqs: Collection[int]) -> None:
        """Note that the key phase of documents has ended; with the last one all of it.

        Call it once the record says so. It fails nobody: what cannot be written now is
        kept in memory, and written with what comes next.

        Args:
            claim: the caller's.
            seqs: the documents, by their place in it.
        """
        self._note_anyhow(lambda: self._over(claim, seqs))

    def _over(self, claim: Claim, seqs: Collection[int]) -> list[object]:
        """The line that says so."""
        entry = self._entries.get(claim.id)
        known = set[int]() if entry is None else entry.over
        waiting = {
            document.seq
            for document in claim.documents
            if document.state is ItemState.WAITING
        }
        until = _ms(self._clock.now() + _KEPT)
        if entry is not None and entry.attempts:
            # It has opened: its times are those that were consented to.
            until = entry.until
        if waiting <= known | set(seqs):
            return ["ended", claim.id, until]
        return ["over", claim.id, until, sorted(seqs)]

    def demand_not_ended(self, name: str) -> None:
        """Refuse what this host saw end.

        Args:
            name: id of an HSM task.

        Raises:
            ActivationInvalidError: it ended.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        with self._opened():
            entry = self._entries.get(name)
            if entry is not None and entry.ended:
                raise ActivationInvalidError(_LAYER)

    def end(self, name: str) -> None:
        """Note the end of an HSM task; it fails nobody, as `over`.

        Args:
            name: its id.
        """
        until = _ms(self._clock.now() + _KEPT)
        self._note_anyhow(lambda: ["ended", name, until])

    def _phase_end(self, begun: int, claim: Claim) -> int:
        """End of the key phase here, in milliseconds since 1970."""
        phase = self._key_phase + timedelta(seconds=len(claim.documents))
        return begun + phase // timedelta(milliseconds=1)

    # -- the file ----------------------------------------------------------------

    def _note(self, file: int, line: Sequence[object]) -> None:
        """Write one line, then have it count.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: nobody would understand it. SQLite
                gives numbers and texts of any kind.
        """
        if not _is_kept(line):
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        self._append(file, [line])
        self._learn(line)

    def _note_anyhow(self, line: Callable[[], Sequence[object]]) -> None:
        """Have a line count, and write it where that is possible now.

        Args:
            line: makes it, by what is known then.
        """
        try:
            with self._opened() as file:
                self._note(file, line())
        except ApplianceError as exc:
            # What is known and not in the file is written with what comes next.
            self._header = b""
            _log.error("activation.journal_not_written", code=exc.code.value)
            if _is_kept(kept := line()):
                self._learn(kept)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the journal, with all in mind that workers of the host have written.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with self._folder.locked() as folder:
            file = os.open(JOURNAL, flags, 0o600, dir_fd=folder)
            try:
                self._catch_up(file)
                yield file
                if self._read > self._compact_at:
                    self._compact(folder)
            finally:
                os.close(file)

    def _catch_up(self, file: int) -> None:
        """Read what is new; write what another version of the program threw away."""
        header, known = os.pread(file, _HEADER_BYTES, 0), dict[str, _Entry]()
        if len(header) < _HEADER_BYTES:
            # Of a new file, or of one whose first writer was killed.
            os.ftruncate(file, 0)
            header = _new_header()
            os.write(file, header)
        size = os.fstat(file).st_size
        if self._header != header:
            # Another file: written anew, or deleted by a worker of a version before.
            known, self._entries = self._entries, {}
            self._header, self._read = header, len(header)
            self._compact_at = max(_LEAST_BYTES, 2 * size)
        content = b""
        while self._read + len(content) < size:
            at = self._read + len(content)
            content += os.pread(file, _READ_BYTES, at) or _truncated()
        whole = content.rfind(b"\n") + 1
        for line in content[:whole].splitlines():
            self._learn(_parsed(line))
        self._read += whole
        if whole < len(content):
            # A writer was killed in the midst of its line, and did nothing after it.
            os.ftruncate(file, self._read)
        lost = list(self._lost(known))
        if lost:
            self._append(file, lost)
            for one in lost:
                self._learn(one)

    def _lost(self, known: dict[str, _Entry]) -> Iterator[list[object]]:
        """Lines of what this process knows and the file does not say."""
        now = _ms(self._clock.now())
        for name, entry in known.items():
            if entry.until > now and entry != self._entries.get(name):
                yield from entry.lines(name)

    def _append(self, file: int, lines: Sequence[Sequence[object]]) -> None:
        """Write whole lines, or none.

        Raises:
            OSError: there is no room.
        """
        content = b"".join(map(_line, lines))
        written = os.write(file, content)
        if written != len(content):
            os.ftruncate(file, self._read)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._read += len(content)

    def _compact(self, folder: int) -> None:
        """Write the journal anew, without what may be forgotten."""
        now = _ms(self._clock.now())
        self._entries = {
            name: entry for name, entry in self._entries.items() if entry.until > now
        }
        header = _new_header()
        content = header + b"".join(
            _line(line)
            for name, entry in self._entries.items()
            for line in entry.lines(name)
        )
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(_NEW, flags, 0o600, dir_fd=folder)
        with os.fdopen(handle, "wb") as new:
            new.write(content)
        os.rename(_NEW, JOURNAL, src_dir_fd=folder, dst_dir_fd=folder)
        self._header, self._read = header, len(content)
        self._compact_at = max(_LEAST_BYTES, 2 * len(content))

    def _learn(self, line: Sequence[object]) -> None:
        """Have a line count.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: it is none of this version's.
        """
        if not _learn(self._entries, line):
            _log.error("activation.journal_unreadable")
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)


def _learn(entries: dict[str, _Entry], line: Sequence[object]) -> bool:
    """Have a line count among entries; False if it is none of this version's."""
    match line:
        case ["begun", str(name), int(until), int(begun)]:
            entry = _entry(entries, name, until)
            entry.begun = min(begun, entry.begun or begun)
        case ["intent", str(name), int(until), int(fence), list(uses)]:
            read = [_attempt(fence, fields) for fields in uses]
            entry = _entry(entries, name, until)
            for each in read:
                if each is None:
                    return False
                seq, attempt = each
                known = entry.attempts.get(seq)
                if known is None or known.fence < fence:
                    entry.attempts[seq] = attempt
        case ["over", str(name), int(until), list(seqs)]:
            if not all(isinstance(seq, int) for seq in seqs):
                return False
            entry = _entry(entries, name, until)
            entry.over.update(seqs)
        case ["ended", str(name), int(until)]:
            entry = _entry(entries, name, until)
            entry.ended = True
        case _:
            return False
    if entry.ended:
        # Nothing else of it matters any more.
        entry.begun = None
        entry.attempts.clear()
        entry.over.clear()
    return True


def _entry(entries: dict[str, _Entry], name: str, until: int) -> _Entry:
    """The entry of an id, kept until then at least."""
    entry = entries.setdefault(name, _Entry(until))
    entry.until = max(entry.until, until)
    return entry


def _is_kept(line: Sequence[object]) -> bool:
    """Return whether the file may have a line: it is short, and will be understood."""
    _, name, *_ = line
    is_id = isinstance(name, str) and len(name) <= _ID_CHARACTERS
    return is_id and _learn({}, line)


def _parsed(line: bytes) -> list[object]:
    """A line of the file; one that is no JSON is of no shape."""
    try:
        found = json.loads(line)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def _attempt(fence: int, fields: object) -> tuple[int, _Attempt] | None:
    """A document of an `intent` line, and the attempt at it; None for another thing."""
    match fields:
        case [int(seq), str(digest), str(at), int(token_bytes)]:
            with suppress(ValueError):
                use = KeyUse(digest, datetime.fromisoformat(at), token_bytes)
                return seq, _Attempt(fence, use)
    return None


def _line(fields: Sequence[object]) -> bytes:
    """A line of the file. Ids are of the database: JSON keeps them on their line."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def _new_header() -> bytes:
    """A first line that no other file has."""
    return _line(["journal", secrets.token_hex(16)])


def _truncated() -> bytes:
    """Say that a file became shorter while its lock was held.

    Raises:
        OSError: always.
    """
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def _ms(at: datetime) -> int:
    """A time in milliseconds since 1970."""
    return int(at.timestamp() * 1000)
