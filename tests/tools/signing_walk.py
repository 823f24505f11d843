"""Print the walk of one signature: `python -m tests.tools.signing_walk`.

`POST /solicitudes/firmar`, JSON, one request, a wrapped key, B-LT: every function of
ours in the order in which it is first entered, then how many, how often the module
changes, and how often to one that had been left.
"""

import sys

from tests.support.appliance.signing_walk import Walk, walk_of_a_signature


def table(walk: Walk) -> str:
    """The walk as text: a line for each function, the module where it changes."""
    lines, module = [], ""
    for each in walk.entered:
        if each.module != module:
            module = each.module
            lines.append(module)
        lines.append(f"    {each.function}")
    counted = (
        f"functions {walk.functions}, module changes {walk.module_changes}, "
        f"returns {walk.returns}"
    )
    return "\n".join([*lines, counted, ""])


def main() -> int:
    """Print it."""
    sys.stdout.write(table(walk_of_a_signature()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
