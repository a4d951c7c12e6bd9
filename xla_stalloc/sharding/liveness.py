"""How much is live at once in a program that no compiler has touched: what XLA will likely make of it.

It knows three habits of XLA. What is computed element by element is fused into what reads it, and takes no memory of
its own. A loop updates what it carries in place. And an operation may write over an operand that nobody reads any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from xla_stalloc.sharding.partitioned import Operation, Region, Value

_ELEMENTWISE = frozenset(
    (
        "chlo.erf",
        "sdy.all_slice",
        "sdy.constant",
        *map(
            "stablehlo.{}".format,
            (
                *("abs", "add", "and", "bitcast_convert", "broadcast_in_dim", "ceil", "clamp", "compare"),
                *("concatenate", "constant", "convert", "cosine", "divide", "dynamic_slice", "exponential"),
                *("exponential_minus_one", "floor", "iota", "is_finite", "log", "log_plus_one", "logistic"),
                *("maximum", "minimum", "multiply", "negate", "not", "optimization_barrier", "or", "pad", "popcnt"),
                *("power", "remainder", "reshape", "reverse", "round_nearest_afz", "round_nearest_even", "rsqrt"),
                *("select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "slice"),
                *("sqrt", "subtract", "tan", "tanh", "transpose", "xor"),
            ),
        ),
    )
)
_ABSORBS = _ELEMENTWISE | {"stablehlo.reduce", "stablehlo.dynamic_update_slice", "stablehlo.gather"}
_MOVES = frozenset(
    f"stablehlo.{name}" for name in ("bitcast_convert", "broadcast_in_dim", "convert", "reshape", "transpose")
)
_COSTLY = frozenset(
    f"stablehlo.{name}" for name in ("cosine", "divide", "exponential", "log", "logistic", "power", "sine", "tanh")
)
_SOFTMAX = frozenset(("stablehlo.divide",))  # its last step; what attention has computed is always kept
_RELABELS = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"))
_FREE = frozenset(("stablehlo.constant", "sdy.constant", "stablehlo.iota"))
_IN_PLACE = _ELEMENTWISE | {"stablehlo.dynamic_update_slice", "sdy.all_reduce", "stablehlo.scatter", "stablehlo.reduce"}


@dataclass(slots=True)
class _Home:
    """Memory that values take one after the other."""

    bytes: int
    begin: int
    end: int
    counts: bool = True


def peak(region: Region, outside: frozenset[Value] = frozenset(), keeps: bool = True) -> int:
    """Most bytes that are live at once, of what the region is given and makes.

    Args:
        keeps: whether what is costly to compute is kept for its second reader, and what products read in another type
            or layout is made as they read it; or else it is computed again, and laid down as products read it.
        outside: values whose memory is counted elsewhere, by whoever calls.
    """
    return _Walk(region, outside, keeps).peak()


class _Walk:
    def __init__(self, region: Region, outside: frozenset[Value], keeps: bool = True) -> None:
        self.region = region
        self.keeps = keeps
        self.users: dict[Value, list[int]] = {}
        for number, op in enumerate(region.operations):
            for value in op.operands:
                self.users.setdefault(value, []).append(number)
        self.returned = set(region.returned)
        self.fused = self._fused()
        self.reads = self._reads()
        self.homes: dict[Value, _Home] = {}
        self.outside = outside

    def _fused(self) -> set[int]:
        """Operations that are computed where they are read."""
        fused = set()
        for number in reversed(range(len(self.region.operations))):
            op = self.region.operations[number]
            if op.name not in _ELEMENTWISE or any(value in self.returned for value in op.results):
                continue
            users = [user for value in op.results for user in self.users.get(value, ())]
            if op.name in _FREE or (
                all(self._absorbs(op, self.region.operations[user]) for user in users)
                and not (op.name in (_COSTLY if self.keeps else _SOFTMAX) and len(set(users)) > 1)
            ):
                fused.add(number)
        return fused

    def _absorbs(self, op: Operation, user: Operation) -> bool:
        if user.name in _ABSORBS:
            return True
        return user.name == "stablehlo.dot_general" and op.name in (_MOVES if self.keeps else _RELABELS)

    def _reads(self) -> list[int]:
        """For each operation, when it reads: where it stands, or as late as whatever it is fused into."""
        reads = list(range(len(self.region.operations)))
        for number in reversed(range(len(reads))):
            if number in self.fused:
                users = (user for value in self.region.operations[number].results for user in self.users.get(value, ()))
                reads[number] = max((reads[user] for user in users), default=number)
        return reads

    def _last(self, value: Value) -> int:
        if value in self.returned:
            return len(self.region.operations)
        return max((self.reads[user] for user in self.users.get(value, ())), default=-1)

    def peak(self) -> int:
        operations = self.region.operations
        inside = [0] * (len(operations) + 1)
        homes = [_Home(v.bytes, -1, self._last(v), v not in self.outside) for v in self.region.arguments]
        self.homes.update(zip(self.region.arguments, homes, strict=True))
        for number, op in enumerate(operations):
            if number in self.fused:
                continue
            inside[number] = self._within(op)
            taken: set[int] = set()
            for place, value in enumerate(op.results):
                home = self._inherited(number, place, value, taken)
                if home is None:
                    home = _Home(value.bytes, number, number)
                    homes.append(home)
                taken.add(id(home))
                home.end = max(home.end, self._last(value), number)
                home.counts = home.counts and value not in self.outside
                self.homes[value] = home
        change = [0] * (len(operations) + 3)
        for home in homes:
            if home.counts:
                change[home.begin + 1] += home.bytes
                change[home.end + 2] -= home.bytes
        live = most = 0
        for moment in range(len(operations) + 2):
            live += change[moment]
            most = max(most, live + (inside[moment - 1] if moment else 0))
        return most

    def _within(self, op: Operation) -> int:
        """What an operation needs while it runs, besides operands and results."""
        if op.name == "stablehlo.while":
            condition, body = op.regions
            # What it is given and hands on untouched lies where it lay, as does what lies around it.
            carried = frozenset(
                value for value, back in zip(body.arguments, body.returned, strict=True) if value is back
            )
            own = sum(value.bytes for value in body.arguments if value not in carried)
            return max(0, peak(body, carried, self.keeps) - own, peak(condition, frozenset(condition.arguments)))
        return max((peak(region, frozenset(region.arguments), self.keeps) for region in op.regions), default=0)

    def _inherited(self, number: int, place: int, value: Value, taken: set[int]) -> _Home | None:
        """The home of an operand that a result takes over."""
        op = self.region.operations[number]
        if op.name == "stablehlo.while":
            home = self.homes.get(op.operands[place]) if place < len(op.operands) else None
            body = op.regions[1]
            untouched = body.returned[place] is body.arguments[place]
            free = home is not None and (untouched or home.end <= number) and id(home) not in taken
            return home if free or (untouched and home is not None) else None
        if op.name not in _IN_PLACE:
            return None
        for operand in self._sources(op):
            home = self.homes.get(operand)
            if home is not None and home.end <= number and home.bytes == value.bytes and id(home) not in taken:
                return home
        return None

    def _sources(self, op: Operation) -> list[Value]:
        """What an operation reads, through whatever is fused into it."""
        found: list[Value] = []
        waiting = list(op.operands)
        seen = set()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.homes:
                found.append(value)
            elif (maker := self._maker().get(value)) is not None and maker in self.fused:
                waiting += self.region.operations[maker].operands
        return found

    def _maker(self) -> dict[Value, int]:
        if not hasattr(self, "_made"):
            self._made = {v: n for n, op in enumerate(self.region.operations) for v in op.results}
        return self._made
