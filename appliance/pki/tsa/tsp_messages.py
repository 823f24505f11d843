"""RFC 3161 as it comes over the wire: questions read, answers written.

A question is of a stranger: whatever is not exactly one is rejected in the
answer's own words, before anything is asked of the HSM. It is read value by
value, for asn1crypto's types stumble over some of what is none.
"""

from typing import Final

from asn1crypto import algos, core, parser, tsp

from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.timestamps import (
    TIMESTAMP_POLICY,
    TimestampQuestion,
    TimestampRefusal,
)

_BOOLEAN, _INTEGER, _OCTETS, _OID, _SEQUENCE = 0x01, 0x02, 0x04, 0x06, 0x30
_EXTENSIONS: Final = 0xA0
_OPTIONAL: Final = (_OID, _INTEGER, _BOOLEAN, _EXTENSIONS)
"""Tags of policy, nonce, certReq and extensions, which come in this order."""
_VERSION: Final = b"\x01"
_NULL: Final = b"\x05\x00"
_POLICY: Final = core.ObjectIdentifier(TIMESTAMP_POLICY).contents
_DIGESTS: Final = {
    algos.DigestAlgorithmId(digest.value).contents: digest for digest in DigestAlgorithm
}


def read_question(der: bytes) -> TimestampQuestion | TimestampRefusal:
    """Read a TimeStampReq.

    Args:
        der: what came.

    Returns:
        The question, or why it is rejected.

    Source: RFC 3161, 2.4.1.
    """
    try:
        return _question(der)
    except ValueError:
        return TimestampRefusal.BAD_DATA_FORMAT


def _question(der: bytes) -> TimestampQuestion | TimestampRefusal:
    """See `read_question`.

    Raises:
        ValueError: it is none.
    """
    ((tag, whole),) = _values(der)
    (version, imprint), options = _fields(tag, whole)
    ((_, algorithm), (_, hashed)) = _tagged(imprint, _SEQUENCE, _OCTETS)
    (_, oid), *parameters = _values(algorithm)
    null_parameters = parameters == [(_NULL[0], b"")]
    digest = _DIGESTS.get(oid)
    if version != _VERSION or (parameters and not null_parameters):
        return TimestampRefusal.BAD_REQUEST
    if digest is None:
        return TimestampRefusal.BAD_ALGORITHM
    if options.get(_OID, _POLICY) != _POLICY:
        return TimestampRefusal.UNACCEPTED_POLICY
    if _EXTENSIONS in options:
        return TimestampRefusal.UNACCEPTED_EXTENSION
    if len(hashed) != digest.size_bytes:
        raise ValueError
    nonce = options.get(_INTEGER)
    return TimestampQuestion(
        hashed,
        digest,
        nonce=None if nonce is None else int.from_bytes(nonce, signed=True),
        certificates=options.get(_BOOLEAN, b"\0") != b"\0",
        null_parameters=null_parameters,
    )


def _fields(tag: int, whole: bytes) -> tuple[tuple[bytes, bytes], dict[int, bytes]]:
    """Version and imprint of a TimeStampReq, and what else is there by its tag.

    Raises:
        ValueError: they are missing, or the rest is out of order.
    """
    first, second, *others = _values(whole)
    if (tag, first[0], second[0]) != (_SEQUENCE, _INTEGER, _SEQUENCE):
        raise ValueError
    places = [_OPTIONAL.index(tag) for tag, _ in others]
    if places != sorted(set(places)):
        raise ValueError
    options = dict(others)
    if len(options.get(_BOOLEAN, b"-")) != 1 or not options.get(_INTEGER, b"-"):
        raise ValueError
    return (first[1], second[1]), options


def _tagged(content: bytes, *tags: int) -> list[tuple[int, bytes]]:
    """The values within a constructed one, which must have these tags.

    Raises:
        ValueError: they have not.
    """
    values = _values(content)
    if [tag for tag, _ in values] != list(tags):
        raise ValueError
    return values


def _values(content: bytes) -> list[tuple[int, bytes]]:
    """Values one after another, each with its first tag octet.

    Raises:
        ValueError: they are cut short, or not DER.
    """
    found = []
    while content:
        *_, header, body, trailer = parser.parse(content)
        if trailer:
            # Of an indefinite length, which is BER alone.
            raise ValueError
        found.append((header[0], body))
        content = content[len(header) + len(body) :]
    return found


def granted(token: bytes) -> bytes:
    """The TimeStampResp with a token, DER. Source: RFC 3161, 2.4.2.

    Args:
        token: TimeStampToken, DER.
    """
    return _sequence(tsp.PKIStatusInfo({"status": "granted"}).dump() + token)


def refused(reason: TimestampRefusal) -> bytes:
    """The TimeStampResp that rejects a question, DER. Source: RFC 3161, 2.4.2."""
    failure = tsp.PKIFailureInfo(tuple(int(bit == reason) for bit in range(reason + 1)))
    status = {"status": "rejection", "fail_info": failure}
    return _sequence(tsp.PKIStatusInfo(status).dump())


def _sequence(content: bytes) -> bytes:
    # asn1crypto's own TimeStampResp insists on a token.
    return bytes(parser.emit(0, 1, core.Sequence.tag, content))
