"""What `rubrica hsm init` found and made."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ProvisionReport:
    """What a run found and made, for people."""

    made: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the run made anything."""
        return bool(self.made)

    def note(self, what: str, *, made: bool) -> None:
        """Add a line."""
        (self.made if made else self.kept).append(what)
