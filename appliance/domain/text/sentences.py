"""Sentences with places for names: one full stop at the end, whatever the name.

    fill("Tell {integrator}.", {"integrator": "Mi Tienda S.A."})  # Tell Mi Tienda S.A.

A name that ends with an abbreviation's dot brings the sentence's full stop along. The
frame's page does the same by `filled` in `embed/static/i18n.js`.
"""

import re
from collections.abc import Mapping

_LAST = re.compile(r"\{(\w+)\}\.(?!\.)")
"""A place before a full stop; before an ellipsis nothing is taken away."""


def fill(sentence: str, values: Mapping[str, object]) -> str:
    """Put values into the places of a sentence.

    Args:
        sentence: with `{name}` places.
        values: by name.

    Raises:
        KeyError: a place has no value, where the mapping gives none for it.
    """

    def ended(found: re.Match[str]) -> str:
        name = found[1]
        value = values.get(name, "")
        return found[0][:-1] if str(value).endswith(".") else found[0]

    return _LAST.sub(ended, sentence).format_map(values)


class Sentence(str):
    """A sentence of a catalogue: templates fill it by `format`."""

    __slots__ = ()

    def format(self, *args: object, **values: object) -> str:
        """Put values into its places, as `fill` does."""
        return super().format(*args) if args else fill(str(self), values)
