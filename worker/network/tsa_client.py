"""Timestamps of authorities outside: RFC 3161 over HTTP, from the chores worker.

    async with open_tsa_client(core) as tsa:
        token = await tsa.stamp(imprint, DigestAlgorithm.SHA256)

Goes to the addresses of the settings and nowhere else: no redirect is followed, no
environment variable read. What comes back is believed only when
`worker.network.tsa_response` finds all of it good; else the next authority is asked.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import aiohttp
import structlog
from asn1crypto import tsp

from appliance.bootstrap import Core, open_trust
from appliance.domain.clock import Clock
from appliance.domain.errors import TsaUnavailableError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import TimestampQuestion, new_nonce
from appliance.settings import TimestampSettings
from appliance.system.http_client import BadAnswerError, HttpClient, read_up_to
from worker.network.external_tsa import REPLY, ExternalTsa, read_outside
from worker.network.trusted_roots import stampers_of
from worker.network.tsa_metrics import tsa_measured
from worker.network.tsa_response import BadTimestampError, checked_token

_log = structlog.get_logger(__name__)
ANSWER_BYTES: Final = 65_536
"""Longest answer that is read."""
_FAILURES: Final = (
    BadTimestampError,
    BadAnswerError,
    aiohttp.ClientError,
    OSError,
    ValueError,
)
"""What an authority that does not answer well ends in; a time-out is an OSError."""

Roots = Callable[[], Awaitable[Sequence[bytes]]]
"""Reads the roots that are trusted for timestamps, DER."""


class TsaClient(HttpClient):
    """Stamps by the first outside authority that answers well.

    Args:
        settings: the authorities, in the order to ask them; at least one.
        roots: trusted for timestamps; read for each stamp.
        clock: the time that theirs is compared with.

    Raises:
        SettingsError: a password or certificate file cannot be used.
    """

    def __init__(self, settings: TimestampSettings, roots: Roots, clock: Clock) -> None:
        super().__init__()
        self._settings = settings
        self._roots = roots
        self._clock = clock
        self._outside = [read_outside(one) for one in settings.outside]

    async def try_each(self) -> dict[str, str]:
        """Have each authority stamp something random, one after another.

        Returns:
            By its place, name and host in the settings: empty where it answered well,
            else why not.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        roots = await self._roots()
        digest = DigestAlgorithm.SHA256
        told = {}
        for place, one in enumerate(self._outside, start=1):
            imprint = secrets.token_bytes(digest.size_bytes)
            name = f"{place} {one.name}"
            if one.name != one.host:
                name += f" ({one.host})"
            try:
                await self._ask(one, imprint, digest, roots)
            except _FAILURES as exc:
                told[name] = _reason(exc)
            else:
                told[name] = ""
        return told

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """Stamp a digest by any of them; see `TimestampAuthority`.

        Raises:
            TsaUnavailableError: as `stamp_by`.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        return await self.stamp_by([one.name for one in self._outside], imprint, digest)

    async def stamp_by(
        self,
        names: Sequence[str],
        imprint: bytes,
        digest: DigestAlgorithm,
        nonce: int | None = None,
    ) -> bytes:
        """Stamp a digest by one of these authorities.

        Args:
            names: of the settings, in the order to ask them; those that failed a
                while ago are asked last. One that is not set is passed over.
            imprint: digest of what is stamped.
            digest: what made the imprint.
            nonce: that the token has to repeat; a new one for each authority, if
                not given.

        Raises:
            TsaUnavailableError: none of the authorities gave a good token.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        roots = await self._roots()
        reasons = []
        for one in self._in_order(names):
            try:
                token = await self._ask(one, imprint, digest, roots, nonce)
            except _FAILURES as exc:
                reason = _reason(exc)
                rest = timedelta(seconds=self._settings.rest_s)
                one.rests_until = self._clock.now() + rest
                _log.warning("tsa.failed", tsa=one.host, reason=reason)
                reasons.append(f"{one.host}: {reason}")
                continue
            one.rests_until = None
            return token
        raise TsaUnavailableError("; ".join(reasons) or "no authority is set")

    def _in_order(self, names: Sequence[str]) -> list[ExternalTsa]:
        """These authorities, those that failed a while ago last."""
        now = self._clock.now()
        known = {one.name: one for one in self._outside}
        return sorted(
            (known[name] for name in names if name in known),
            key=lambda one: one.rests_until is not None and now < one.rests_until,
        )

    async def _ask(
        self,
        one: ExternalTsa,
        imprint: bytes,
        digest: DigestAlgorithm,
        roots: Sequence[bytes],
        nonce: int | None = None,
    ) -> bytes:
        """Ask one authority, check its answer, and note how it did.

        Raises:
            BadTimestampError: it is not good.
            TimeoutError: it came too late.
            ClientError: there was none.
        """
        with tsa_measured(one.name):
            return await self._answer_of(one, imprint, digest, roots, nonce)

    async def _answer_of(
        self,
        one: ExternalTsa,
        imprint: bytes,
        digest: DigestAlgorithm,
        roots: Sequence[bytes],
        nonce: int | None,
    ) -> bytes:
        """Ask one authority, and check its answer.

        Raises:
            BadTimestampError: it is not good.
            TimeoutError: it came too late.
            ClientError: there was none.
        """
        nonce = new_nonce() if nonce is None else nonce
        question = TimestampQuestion(imprint, digest, nonce=nonce)
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
        async with self._session().post(
            one.url,
            data=_encoded(question, one.policy),
            headers=one.headers,
            ssl=one.tls,
            proxy=self._settings.proxy,
            allow_redirects=False,
            timeout=timeout,
        ) as response:
            answer = await _body(response)
        return checked_token(answer, question, one.policy, roots, self._clock.now())


def open_tsa_client(core: Core) -> TsaClient:
    """A client of the settings' authorities, checked by the trust store.

    Args:
        core: open.

    Raises:
        SettingsError: a password or certificate file cannot be used.
    """
    roots = stampers_of(open_trust(core))
    return TsaClient(core.settings.timestamps, roots, core.clock)


def _reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__


def _encoded(question: TimestampQuestion, policy: str | None) -> bytes:
    """A TimeStampReq, DER. Source: RFC 3161, 2.4.1."""
    fields: dict[str, object] = {
        "version": "v1",
        "message_imprint": {
            "hash_algorithm": {"algorithm": question.digest.value},
            "hashed_message": question.imprint,
        },
        "nonce": question.nonce,
        "cert_req": question.certificates,
    }
    if policy is not None:
        fields["req_policy"] = policy
    return bytes(tsp.TimeStampReq(fields).dump())


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """The body of a good answer, no more of it than is read.

    Raises:
        BadTimestampError: another status or type.
        BadAnswerError: it is too long.
        ClientError: it broke off.
    """
    if response.status != HTTPStatus.OK:
        msg = f"HTTP {response.status}"
        raise BadTimestampError(msg)
    if response.content_type != REPLY:
        msg = f"it is {response.content_type}, not {REPLY}"
        raise BadTimestampError(msg)
    return await read_up_to(response, ANSWER_BYTES)
