"""What Python's `help` and editors show of rubrica-client."""

import inspect
import pydoc
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, Final, is_typeddict

import pytest
from rubrica_client import (
    AsyncRubricaClient,
    RubricaClient,
    models,
    resources,
    test_mode,
)
from rubrica_client.calls import Resource, _Described

WAITING: Final = RubricaClient("https://api.example.com", "key")
AWAITING: Final = AsyncRubricaClient("https://api.example.com", "key")
MODELS: Final = [kind for kind in vars(models).values() if is_typeddict(kind)]
CALLS: Final = [
    (kind, name)
    for module in (resources, test_mode)
    for kind in vars(module).values()
    if inspect.isclass(kind) and issubclass(kind, Resource) and kind is not Resource
    for name, found in vars(kind).items()
    if isinstance(found, _Described)
]


def test_a_method_shows_what_it_is_called_with() -> None:
    """Names, types and what comes back; as of a class, with its text."""
    get = inspect.signature(WAITING.requests.get)
    later = inspect.signature(AWAITING.requests.get)

    assert list(get.parameters) == ["process"]
    assert get.return_annotation is models.Request
    assert later.return_annotation == Awaitable[models.Request]
    shown = pydoc.plain(pydoc.render_doc(WAITING.requests.get))
    assert "get(process: str)" in shown


def test_a_list_shows_that_it_is_iterated() -> None:
    """By either client in its own way."""
    listed = inspect.signature(WAITING.batches.members).return_annotation
    later = inspect.signature(AWAITING.batches.members).return_annotation

    assert listed == Iterator[models.BatchMember]
    assert later == AsyncIterator[models.BatchMember]


@pytest.mark.parametrize(("kind", "name"), CALLS)
def test_each_argument_is_explained(kind: type[Resource[Any]], name: str) -> None:
    """And help on its class shows it as a method."""
    _, *parameters = inspect.signature(getattr(kind, name)).parameters
    text = inspect.getdoc(getattr(kind, name)) or ""

    assert [each for each in parameters if f"    {each}: " not in text] == []
    assert f"{name}(self" in pydoc.plain(pydoc.render_doc(kind))


def test_a_client_shows_its_calls() -> None:
    """Each with what it is about."""
    for client in (RubricaClient, AsyncRubricaClient):
        shown = pydoc.plain(pydoc.render_doc(client))
        assert "Many documents for one signer, by one call." in shown
        assert "_open" not in shown


@pytest.mark.parametrize("model", MODELS)
def test_a_model_shows_its_fields(model: Any) -> None:
    """Each with its type, after what it is; those that it has of another too."""
    shown = pydoc.plain(pydoc.render_doc(model))

    assert model.__annotations__
    assert [name for name in model.__annotations__ if f"   {name}: " not in shown] == []


def test_a_model_shows_what_may_be_left_out() -> None:
    """As its type has it."""
    text = inspect.getdoc(models.BatchDocument) or ""

    assert text.startswith("One document of a batch.\n\nFields:\n")
    assert "    archivo: str  (may be left out)\n" in text
    assert "    turno: int  (may be" in (inspect.getdoc(models.SignerInTurn) or "")
    assert "    solicitudes: list[BatchMember]" in (inspect.getdoc(models.Batch) or "")
    assert "    otp: str\n" in (inspect.getdoc(models.TestCode) or "")


def test_one_thing_has_one_name() -> None:
    """The id of a batch, of a request and of one signer's part of it."""
    for name, old in (("batch", "lote"), ("process", "proceso")):
        calls = [inspect.signature(getattr(kind, each)) for kind, each in CALLS]
        assert [call for call in calls if name in call.parameters]
        assert not [call for call in calls if old in call.parameters]
