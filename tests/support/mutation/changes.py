"""Single changes to the statements of a module, as a mutation test makes them.

Each change replaces one range of bytes, so that the rest of the file keeps its lines
and comments. Docstrings, annotations, decorators, f-strings, `__slots__`, log calls and
the texts of exceptions are never changed.

Source of the operators: Offutt et al., "An Experimental Determination of Sufficient
Mutant Operators", ACM TOSEM 5(2), 1996, without arithmetic.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_OPPOSITES: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
}
_NEIGHBOURS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
}
_COMPARISON: Final = re.compile(
    rb"\bis\s+not\b|\bnot\s+in\b|\bis\b|\bin\b|[<>]=|==|!=|[<>]"
)
_LOGGER: Final = re.compile(r"_?log(ger)?")
_NO_EFFECT: Final = frozenset({"assert_never", "assert_type", "reveal_type"})
"""Calls for the type checker."""
_OF_TYPES: Final = frozenset({"cast", "NewType", "ParamSpec", "TypeVar"})
"""Calls whose texts name types."""
_NAMES_FOR_PYTHON: Final = frozenset({"__slots__", "__all__", "__match_args__"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Change:
    """One replacement.

    Args:
        kind: of change, the same word for all of its kind.
        start: first byte that is replaced.
        end: byte after the last one.
        text: in its place.
    """

    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """The module with the change."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and what may be changed in it.

    Args:
        line: its first one.
        scope: names of the classes and functions around it, joined by dots.
        is_in_function: whether it runs when a function is called, not on import.
        head: its text without the statements in it.
        changes: none where nothing can be changed.
    """

    line: int
    scope: str
    is_in_function: bool
    head: str
    changes: tuple[Change, ...]


def statements(source: str) -> list[Statement]:
    """All statements of a module, in the order of their lines."""
    return list(_Module(source).read())


class _Module:
    def __init__(self, source: str) -> None:
        self._tree = ast.parse(source)
        self._data = source.encode()
        starts = [0, *(at.end() for at in re.finditer(rb"\n", self._data))]
        self._line_starts = starts

    def read(self) -> Iterator[Statement]:
        """Its statements."""
        yield from self._read(self._tree.body, (), None)

    def _read(
        self,
        body: Iterable[ast.stmt],
        scope: tuple[str, ...],
        function: Function | None,
    ) -> Iterator[Statement]:
        for node in body:
            changes = () if is_docstring(node) else tuple(self._of(node, function))
            head = self._head(node)
            yield Statement(
                node.lineno, ".".join(scope), function is not None, head, changes
            )
            inner, within = scope, function
            if isinstance(node, Function | ast.ClassDef):
                inner = (*scope, node.name)
                within = node if isinstance(node, Function) else None
            yield from self._read(inner_statements(node), inner, within)

    def _of(self, node: ast.stmt, function: Function | None) -> Iterator[Change]:
        if _names(node) & _NAMES_FOR_PYTHON or _is_log_call(node):
            return
        yield from self._removal(node, function)
        match node:
            case ast.If() if not _is_constant(node.test):
                yield self._replace("branch never taken", node.test, "False")
            case ast.Return() if node.value is not None:
                yield from self._return(node.value, function)
            case _:
                pass
        if isinstance(node, ast.If | ast.While | ast.Assert) and _is_plain(node.test):
            yield self._negate("boolean negated", node.test)
        for expression in _expressions(node):
            yield from self._in_expression(expression, is_raised=_is_raise(node))

    def _removal(self, node: ast.stmt, function: Function | None) -> Iterator[Change]:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                is_removed = name not in _NO_EFFECT
            case ast.Expr(value=ast.Call() | ast.Await()):
                is_removed = True
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                # Without it every use of the object would fail at once.
                is_removed = function is not None and function.name != "__init__"
            case ast.Delete(targets=targets):
                is_removed = not all(isinstance(one, ast.Name) for one in targets)
            case ast.Return(value=None) | ast.Raise() | ast.AugAssign():
                is_removed = True
            case ast.Continue() | ast.Break():
                is_removed = True
            case _:
                is_removed = False
        if is_removed:
            yield self._replace("statement removed", node, "pass")

    def _return(self, value: ast.expr, function: Function | None) -> Iterator[Change]:
        if _is_constant(value) or _names(value) == {"NotImplemented"}:
            return
        returns = None if function is None else function.returns
        if isinstance(returns, ast.Name) and returns.id == "bool":
            yield self._negate("return value replaced", value)
        else:
            yield self._replace("return value replaced", value, "None")

    def _in_expression(self, node: ast.expr, *, is_raised: bool) -> Iterator[Change]:
        for one in _walk(node):
            match one:
                case ast.Compare(ops=[operator]):
                    yield from self._comparison(one, operator)
                case ast.BoolOp():
                    yield from self._and_or(one)
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    text = f"({self._text(operand)})"
                    yield self._replace("boolean negated", one, text)
                case ast.Constant():
                    yield from self._constant(one, is_raised=is_raised)
                case _:
                    pass
        yield from (
            self._negate("boolean negated", test)
            for test in _tests(node)
            if _is_plain(test)
        )

    def _comparison(self, node: ast.Compare, operator: ast.cmpop) -> Iterator[Change]:
        start, end = self._range(node.left)[1], self._range(node.comparators[0])[0]
        between = self._data[start:end]
        found = _COMPARISON.search(between)
        if found is None or b"#" in between:
            return
        at, to = start + found.start(), start + found.end()
        yield Change("comparison flipped", at, to, _OPPOSITES[type(operator)])
        if (neighbour := _NEIGHBOURS.get(type(operator))) is not None:
            yield Change("boundary moved", at, to, neighbour)

    def _and_or(self, node: ast.BoolOp) -> Iterator[Change]:
        """One change for all operators of `a and b and c`."""
        old, new = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
        start = self._range(node.values[0])[1]
        end = self._range(node.values[-1])[0]
        text, at = b"", start
        for before, after in zip(node.values, node.values[1:], strict=False):
            left, right = self._range(before)[1], self._range(after)[0]
            between = self._data[left:right]
            if b"#" in between:
                return
            text += self._data[at:left] + re.sub(rb"\b%s\b" % old, new, between)
            at = right
        yield Change("and/or", start, end, text.decode())

    def _constant(self, node: ast.Constant, *, is_raised: bool) -> Iterator[Change]:
        match node.value:
            case bool(value):
                text = str(not value)
            case int(value):
                text = str(value + 1)
            case float(value):
                text = repr(value * 2 or 1.0)
            case str(value):
                # A text with blanks is read by a person.
                if is_raised or " " in value.strip():
                    return
                text = repr(f"{value}x")
            case bytes(value):
                text = repr(value + b"x")
            case _:
                return
        yield self._replace("constant changed", node, text)

    def _negate(self, kind: str, node: ast.expr) -> Change:
        return self._replace(kind, node, f"(not ({self._text(node)}))")

    def _replace(self, kind: str, node: ast.expr | ast.stmt, text: str) -> Change:
        return Change(kind, *self._range(node), text)

    def _range(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node: ast.expr) -> str:
        start, end = self._range(node)
        return self._data[start:end].decode()

    def _head(self, node: ast.stmt) -> str:
        start, end = self._range(node)
        inner = inner_statements(node)
        if inner:
            end = min(self._range(one)[0] for one in inner)
        return self._data[start:end].decode().strip()


def inner_statements(
    node: ast.stmt | ast.ExceptHandler | ast.match_case,
) -> list[ast.stmt]:
    """Statements directly in a statement, in the order of their lines."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            found += inner_statements(child)
    return found


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """Expressions of a statement itself that may be changed."""
    found: list[ast.expr | None]
    match node:
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            found = [*arguments.defaults, *arguments.kw_defaults]
        case ast.ClassDef() | ast.Import() | ast.ImportFrom():
            found = []
        case ast.AnnAssign(value=value):
            found = [value]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            found = [item.context_expr for item in items]
        case ast.Match(subject=subject, cases=cases):
            found = [subject, *(case.guard for case in cases)]
        case _:
            children = ast.iter_child_nodes(node)
            found = [child for child in children if isinstance(child, ast.expr)]
    return [expression for expression in found if expression is not None]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression that may be changed."""
    # Python 3.11 gives wrong columns inside f-strings.
    if isinstance(node, ast.JoinedStr | ast.arguments):
        return
    yield node
    if isinstance(node, ast.Call) and _callee(node) in _OF_TYPES:
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _tests(node: ast.expr) -> Iterator[ast.expr]:
    """Expressions inside an expression whose truth decides something."""
    for one in _walk(node):
        match one:
            case ast.IfExp(test=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case _:
                pass


def _callee(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _names(node: ast.AST) -> set[str]:
    """Names that a statement assigns, or the one that an expression is."""
    match node:
        case ast.Assign(targets=targets):
            return {one.id for one in targets if isinstance(one, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name):
            return {name}
        case _:
            return set()


def is_docstring(node: ast.stmt) -> bool:
    """True for a docstring, and for the text that documents an attribute."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def _is_log_call(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))
            | ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name))))
        ):
            return _LOGGER.fullmatch(name) is not None
        case _:
            return False


def _is_raise(node: ast.stmt) -> bool:
    return isinstance(node, ast.Raise)


def _is_plain(test: ast.expr) -> bool:
    """True if negating is not what another change does already, or senseless."""
    return not (
        _is_constant(test)
        or (isinstance(test, ast.Compare) and len(test.ops) == 1)
        or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    )


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Name(id="TYPE_CHECKING"):
            return True
        case _:
            return False
