"""What the log tells of an unknown error: its text, and no value that it quotes."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from appliance.web.error_text import error_text
from appliance.web.request_log import trace

SECRET = "Zx9-korrekt.Pferd"


def _raised(work: Callable[[], Any]) -> Exception:
    try:
        work()
    except Exception as exc:  # noqa: BLE001 (whatever it is)
        return exc
    pytest.fail("it raised nothing")


def _template() -> None:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=True)
    environment.from_string("{{ typed.by_mail }}").render(typed=SimpleNamespace())


def _missing_key() -> None:
    fields: dict[str, str] = {}
    _ = fields["by_mail"]


def _none_has_no_name() -> None:
    value: Any = None
    _ = value.person_name


def _too_many() -> None:
    numbers = [1, 2]
    (_one,) = numbers


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (_template, "has no attribute 'by_mail'"),
        (_missing_key, "'by_mail'"),
        (_none_has_no_name, "object has no attribute 'person_name'"),
        (_too_many, "too many values to unpack"),
        (lambda: 1 / 0, "division by zero"),
    ],
)
def test_text_of_a_fault_of_ours_is_told(work: Callable[[], None], told: str) -> None:
    """With the names that the code has."""
    assert told in error_text(_raised(work))


def _quoting(value: str) -> list[Callable[[], Any]]:
    """Errors that quote what they were given."""
    fields: dict[str, str] = {}

    def raises(text: str) -> Callable[[], Any]:
        def work() -> None:
            raise ValueError(text)

        return work

    return [
        lambda: int(f"{value}x"),
        lambda: float(f"{value}x"),
        lambda: fields[value],
        lambda: getattr(object(), value),
        lambda: value.encode().decode("ascii").index(value * 2),
        lambda: Path(f"/{value}").read_bytes(),
        raises(value),
        raises(f"[parameters: ('{value}', 3)]"),
        raises(f"Key (email)=({value}) already exists."),
        raises(f'unterminated "{value}'),
        raises(f"password is {value}"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        "123456",
        "123 456",
        "correct horse battery staple",
        "ana@demo.example",
        "rbk_test_1a2b3c_secretsecret",
        "ñandú",
        "!!§§??",
        "it's",
        'say "x9"',
    ],
)
def test_no_value_is_told(value: str) -> None:
    """Whatever raised it: no word of a password, a code, an address or a key."""
    words = [word for word in value.split() if len(word) > 3 or word.isdigit()]
    for work in _quoting(value):
        told = error_text(_raised(work))
        assert value not in told
        assert not [word for word in words if word in told], told


def test_text_is_short_and_of_one_line() -> None:
    """However long the message is, and whatever ends its lines."""
    error = ValueError("no\nvalue " * 100_000)

    told = error_text(error)

    assert "\n" not in told
    assert len(told) <= 300


def test_error_whose_text_fails_has_none() -> None:
    """A library's own method may raise."""

    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(SilentError()) == ""


def test_trace_has_text_of_error_and_cause() -> None:
    """Each beside its type, the first one first."""

    def work() -> None:
        try:
            int(SECRET)
        except ValueError as exc:
            msg = "no such person"
            raise LookupError(msg) from exc

    lines = trace(_raised(work)).splitlines()

    assert lines[0] == "builtins.ValueError: invalid literal for int() with base 10: …"
    assert "builtins.LookupError: no such person" in lines
    assert SECRET not in "".join(lines)
