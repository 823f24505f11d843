"""What Python's `help` and editors show of rubrica-client."""

import inspect
import pydoc
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, Final

import pytest
from rubrica_client import AsyncRubricaClient, RubricaClient, models, resources
from rubrica_client.calls import Resource, _Described

WAITING: Final = RubricaClient("https://api.example.com", "key")
AWAITING: Final = AsyncRubricaClient("https://api.example.com", "key")
CALLS: Final = [
    (kind, name)
    for kind in vars(resources).values()
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
