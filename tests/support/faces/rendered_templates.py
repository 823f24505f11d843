"""Templates that this process renders, whatever renders them.

    with observed_renderings(observe):
        await app.test_client().get("/admin/people/new")
    with observed_parts(keep):
        await app.test_client().get("/admin/people")

Applications of Quart, the pages of `appliance.web.pages` and mails each have an
environment of their own; all of them render by these two methods of Jinja.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from jinja2 import Template
from jinja2.runtime import Context

Observer = Callable[[Template, dict[str, Any]], None]
"""Takes a template and its context, globals of the environment among it."""
PartObserver = Callable[[Template], None]
"""Takes a template that was begun: a page, or what a page includes or imports."""
_OBSERVERS: Final[list[Observer]] = []
_PART_OBSERVERS: Final[list[PartObserver]] = []


@contextmanager
def observed_renderings(observe: Observer) -> Iterator[None]:
    """Call an observer before each template is rendered.

    Templates that another one extends, includes or imports are not reported.

    Args:
        observe: is called in the thread that renders.
    """
    _observe_jinja()
    _OBSERVERS.append(observe)
    try:
        yield
    finally:
        _OBSERVERS.remove(observe)


@contextmanager
def observed_parts(observe: PartObserver) -> Iterator[None]:
    """Call an observer for each page, and for each include and import that is reached.

    Args:
        observe: is called in the thread that renders.
    """
    _observe_jinja()
    _PART_OBSERVERS.append(observe)
    try:
        yield
    finally:
        _PART_OBSERVERS.remove(observe)


@cache
def _observe_jinja() -> None:
    """Have Jinja call the observers, from now on.

    It stays so: observers of a fixture and of a test do not end in the order in which
    they began, and taking the methods back would end those that go on.
    """
    render, render_async = Template.render, Template.render_async
    new_context = Template.new_context

    def observed(self: Template, *args: Any, **kwargs: Any) -> str:
        _tell(self, *args, **kwargs)
        return render(self, *args, **kwargs)

    async def observed_async(self: Template, *args: Any, **kwargs: Any) -> str:
        _tell(self, *args, **kwargs)
        return await render_async(self, *args, **kwargs)

    def observed_context(self: Template, *args: Any, **kwargs: Any) -> Context:
        for observe in _PART_OBSERVERS:
            observe(self)
        return new_context(self, *args, **kwargs)

    Template.render = observed  # type: ignore[method-assign]  # for observers
    Template.render_async = observed_async  # type: ignore[method-assign]  # as above
    Template.new_context = observed_context  # type: ignore[method-assign]  # as above


def _tell(template: Template, *given: Any, **named: Any) -> None:
    """Call the observers with the context of a rendering."""
    if _OBSERVERS:
        context = {**template.globals, **dict(*given, **named)}
        for observe in _OBSERVERS:
            observe(template, context)
