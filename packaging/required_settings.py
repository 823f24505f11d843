# ruff: noqa: INP001 (it stands alone, run by a path)
"""Print the settings that an installation has to have, one dotted name a line.

An upgrade asks for them before it is unpacked, of a settings file that an earlier
version was content with (packaging/debian/preinst).
"""

from collections.abc import Iterator

from pydantic import BaseModel

from appliance.settings import Settings


def required(section: type[BaseModel], before: str = "") -> Iterator[str]:
    """Names of the keys without a default.

    Args:
        section: whose; those of sections that may be left out are not asked for.
        before: what stands before its keys, with the dot.
    """
    for name, field in section.model_fields.items():
        if not field.is_required():
            continue
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from required(kind, f"{before}{name}.")
        else:
            yield before + (field.alias or name)


if __name__ == "__main__":
    print("\n".join(required(Settings)))  # noqa: T201 (what it is for)
