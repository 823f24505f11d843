"""Outcome of the last `rubrica audit verify`, as the record keeps it."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """Counts of one run over the whole audit."""

    at: datetime
    """When it ended, aware."""
    chains: int
    broken: int
    """Chains with a row that is missing, altered or added."""
    rows: int
    findings: int
    """Of the comparison with the record."""

    @property
    def is_whole(self) -> bool:
        """True if nothing was found."""
        return not self.broken and not self.findings

    def to_text(self) -> str:
        """Return it as the record keeps it."""
        return json.dumps({**asdict(self), "at": self.at.isoformat()}, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> "AuditCheck":
        """Read what the record keeps.

        Raises:
            ValueError: it is of another shape.
        """
        try:
            told = json.loads(text)
            return cls(
                at=datetime.fromisoformat(told["at"]),
                chains=int(told["chains"]),
                broken=int(told["broken"]),
                rows=int(told["rows"]),
                findings=int(told["findings"]),
            )
        except (KeyError, TypeError) as exc:
            raise ValueError(text) from exc
