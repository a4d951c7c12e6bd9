"""The verifier passes a plan if and only if it is the same program: it names each kind of damage, and its place."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc import hlo
from xla_stalloc.hlo import HloError
from xla_stalloc.hlo.rewrite import serialize
from xla_stalloc.lifetimes import of
from xla_stalloc.plan.options import PlanOptions
from xla_stalloc.plan.planner import plan_module
from xla_stalloc.plan.verify import PlanError, verify
from xla_stalloc.scheduling.extract import extract

EVERYTHING = """HloModule everything, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

body {
  state = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[64] get-tuple-element(state), index=1
  one = s32[] constant(1)
  part = f32[1] slice(x), slice={[3:4]}
  updated = f32[64] dynamic-update-slice(x, part, i)
  next = s32[] add(i, one)
  ROOT after = (s32[], f32[64]) tuple(next, updated)
}

condition {
  tested = (s32[], f32[64]) parameter(0)
  step = s32[] get-tuple-element(tested), index=0
  end = s32[] constant(4)
  ROOT less = pred[] compare(step, end), direction=LT
}

ENTRY main {
  donated = f32[64] parameter(0)
  kept = f32[64] parameter(1)
  zero = s32[] constant(0)
  copied = f32[64] copy(donated)
  useful = f32[64] copy(kept)
  first_sum = f32[64] all-reduce(kept), replica_groups={}, channel_id=1, to_apply=add
  second_sum = f32[64] all-reduce(useful), replica_groups={}, channel_id=2, to_apply=add
  first_call = f32[64] custom-call(kept), custom_call_target="call", custom_call_has_side_effect=true
  second_call = f32[64] custom-call(kept), custom_call_target="call", custom_call_has_side_effect=true
  fetch = (f32[64], f32[64]{0:S(5)}, u32[]) copy-start(kept)
  hidden = f32[64] negate(kept)
  fetched = f32[64] copy-done(fetch)
  free = f32[64] sine(kept)
  reader = f32[64] cosine(copied)
  tail = f32[1] slice(kept), slice={[0:1]}
  written = f32[64] dynamic-update-slice(donated, tail, zero)
  bound = f32[64] exponential(kept), control-predecessors={free}
  start = (s32[], f32[64]) tuple(zero, hidden)
  loop = (s32[], f32[64]) while(start), condition=condition, body=body
  looped = f32[64] get-tuple-element(loop), index=1
  ROOT results = (f32[64], f32[64], f32[64], f32[64], f32[64], f32[64], f32[64], f32[64], f32[64], f32[64])
    tuple(written, reader, first_sum, second_sum, first_call, second_call, fetched, bound, looped, free)
}
"""


@pytest.fixture
def stock():
    return hlo.open(EVERYTHING)


class Plan:
    """A plan of `EVERYTHING` to damage, by the names of instructions."""

    def __init__(self, stock):
        self.ids = {i.name: i.id for i in stock.instructions_by_id.values()}
        self.proto = type(stock.proto).FromString(stock.proto.SerializeToString())

    def put_in_order(self):
        """Messages have operands and control predecessors before their users."""
        place = {id: step for step, id in enumerate(self.sequence())}
        instructions = sorted(self.computation().instructions, key=lambda i: place[i.id])
        self.computation().ClearField("instructions")
        self.computation().instructions.extend(instructions)

    def bytes(self):
        return self.proto.SerializeToString()

    def computation(self, name="main"):
        return next(c for c in self.proto.computations if c.name == name)

    def instruction(self, name):
        return next(i for c in self.proto.computations for i in c.instructions if i.name == name)

    def sequence(self, name="main"):
        return self.proto.schedule.sequences[self.computation(name).id].instruction_ids

    def move(self, name, before, computation="main"):
        order = list(self.sequence(computation))
        order.remove(self.ids[name])
        order.insert(order.index(self.ids[before]), self.ids[name])
        self.sequence(computation)[:] = order

    def remove(self, name, instead=None):
        """Takes an instruction out of the entry; its users read `instead`."""
        instructions = self.computation().instructions
        del instructions[[i.name for i in instructions].index(name)]
        self.sequence().remove(self.ids[name])
        for other in instructions:
            if instead is not None:
                other.operand_ids[:] = [self.ids[instead] if o == self.ids[name] else o for o in other.operand_ids]
            else:
                other.operand_ids[:] = [o for o in other.operand_ids if o != self.ids[name]]


def test_stock_is_its_own_plan(stock):
    verify(stock, stock.proto.SerializeToString())


def test_another_order_and_a_copy_less_are_the_same_program(stock):
    plan = Plan(stock)
    plan.move("bound", "reader")
    plan.move("tail", "first_sum")
    plan.remove("copied", instead="donated")
    plan.instruction("written").control_predecessor_ids.append(plan.ids["reader"])
    plan.put_in_order()
    verify(stock, plan.bytes())


def test_collectives_may_move_where_no_other_process_takes_part(stock):
    plan = Plan(stock)
    plan.move("second_sum", "first_sum")
    verify(stock, plan.bytes(), pin_collectives=False)
    with pytest.raises(PlanError, match=r"main.*: .*moves a collective"):
        verify(stock, plan.bytes(), pin_collectives=True)


def _read_after_write(plan):
    """Operands and control dependencies allow this order, so XLA would compile it."""
    plan.remove("copied", instead="donated")
    plan.move("written", "reader")
    plan.move("tail", "written")


def _copy_of_an_argument_that_is_kept(plan):
    plan.remove("useful", instead="kept")


def _other_alias(plan):
    plan.proto.input_output_alias.entries[0].output_shape_index[:] = [1]


DAMAGE = {
    "reads after the write": (_read_after_write, "reader: reads 'donated' when 'written' may have overwritten it"),
    "moved side effect": (lambda p: p.move("second_call", "first_call"), "main.*: .*side effect"),
    "emptied async window": (lambda p: p.move("hidden", "fetch"), "hidden: no longer hides the transfer of 'fetch'"),
    "late async window": (lambda p: p.move("hidden", "start"), "hidden: no longer hides the transfer of 'fetch'"),
    "removed computation": (lambda p: p.remove("reader"), "reader: missing from the planned module, and no plain copy"),
    "removed copy of a kept argument": (
        _copy_of_an_argument_that_is_kept,
        "useful: missing from the planned module, but its argument is not donated",
    ),
    "other operand": (
        lambda p: p.instruction("reader").operand_ids.__setitem__(0, p.ids["kept"]),
        "reader: the planned module gives it other operands",
    ),
    "swapped operands": (
        lambda p: p.instruction("sum").operand_ids.reverse(),
        "sum: the planned module gives it other operands",
    ),
    "dropped control dependency": (
        lambda p: p.instruction("bound").control_predecessor_ids.pop(),
        "bound: the planned module drops a control dependency",
    ),
    "changed shape": (
        lambda p: p.instruction("reader").shape.dimensions.__setitem__(0, 32),
        "reader: the planned module changes it",
    ),
    "changed opcode": (lambda p: setattr(p.instruction("reader"), "opcode", "sine"), "reader: .* changes it"),
    "changed name": (lambda p: setattr(p.instruction("reader"), "name", "lost"), "lost: .* changes it"),
    "changed metadata": (
        lambda p: setattr(p.instruction("free").metadata, "op_name", "other"),
        "free: the planned module changes it",
    ),
    "changed backend config": (
        lambda p: setattr(p.instruction("free"), "backend_config", b"{}"),
        "free: the planned module changes it",
    ),
    "other root": (lambda p: setattr(p.computation("add"), "root_id", p.ids["a"]), "add.*: .*another root, 'a'"),
    "other entry": (
        lambda p: setattr(p.proto, "entry_computation_id", p.computation("add").id),
        "'everything' is not a complete program: an alias or donation of something that is not there",
    ),
    "other alias": (_other_alias, "everything: the planned module changes its input_output_alias"),
    "no alias": (
        lambda p: p.proto.ClearField("input_output_alias"),
        "everything: the planned module changes its input_output_alias",
    ),
    "renamed computation": (lambda p: setattr(p.computation("body"), "name", "b"), "b: .* changes its name"),
    "no schedule of a loop": (
        lambda p: p.proto.schedule.sequences.pop(p.computation("body").id),
        "body.*: .* schedule",
    ),
    "instruction twice in the schedule": (
        lambda p: p.sequence().append(p.sequence()[-1]),
        "does not have each instruction once",
    ),
    "instruction not in the schedule": (
        lambda p: p.sequence().remove(p.ids["free"]),
        "does not have each instruction once",
    ),
    "users before operands": (lambda p: p.move("looped", "loop"), "runs 'looped' before 'loop', which it needs"),
    "before a control predecessor": (lambda p: p.move("bound", "free"), "runs 'bound' before 'free', which it needs"),
    "no loop body": (lambda p: p.proto.computations.remove(p.computation("body")), "refers to id"),
    "no reducer's instructions": (lambda p: p.computation("add").instructions.pop(), "no instruction with its root"),
    "users before operands in a loop": (
        lambda p: p.move("updated", "part", "body"),
        "runs 'updated' before 'part', which it needs",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named(stock, kind):
    damage, message = DAMAGE[kind]
    plan = Plan(stock)
    damage(plan)
    with pytest.raises((PlanError, HloError), match=message):
        verify(stock, plan.bytes())


def test_a_loop_body_that_overwrites_before_it_reads(stock):
    text = EVERYTHING.replace(
        "part = f32[1] slice(x), slice={[3:4]}", "part = f32[1] constant({1})\n  seen = f32[64] negate(x)"
    ).replace("(s32[], f32[64])", "(s32[], f32[64], f32[64])")
    text = text.replace("tuple(next, updated)", "tuple(next, updated, seen)")
    text = text.replace("tuple(zero, hidden)", "tuple(zero, hidden, kept)")
    stock = hlo.open(text)
    plan = Plan(stock)
    verify(stock, plan.bytes())
    plan.move("updated", "seen", "body")
    with pytest.raises(PlanError, match="seen: reads 'state' when 'updated' may have overwritten it"):
        verify(stock, plan.bytes())


def test_added_instructions_are_named(stock):
    plan = Plan(stock)
    added = plan.computation().instructions.add()
    added.CopyFrom(plan.instruction("free"))
    added.id, added.name = max(plan.ids.values()) + 1, "added"
    plan.sequence().append(added.id)
    with pytest.raises(PlanError, match="instructions that are not in stock's"):
        verify(stock, plan.bytes())


def test_constants_are_compared(stock):
    """They are in a part of the message that the project's own schema does not know."""
    other = hlo.open(EVERYTHING.replace("end = s32[] constant(4)", "end = s32[] constant(5)"))
    other.proto.id = stock.proto.id
    with pytest.raises(PlanError, match="end: the planned module changes it"):
        verify(stock, other.proto.SerializeToString())


@pytest.mark.parametrize("serialized", [b"", b"\xff\xff garbage", b"\x0a\x04name"])
def test_bytes_that_are_no_module(stock, serialized):
    with pytest.raises(HloError, match="planned module"):
        verify(stock, serialized)


@given(cut=st.integers(0, 1 << 20))
@settings(max_examples=60, derandomize=True)
def test_truncated_plans(cut):
    stock = hlo.open(EVERYTHING)
    serialized = stock.proto.SerializeToString(deterministic=True)
    with pytest.raises((PlanError, HloError)):
        verify(stock, serialized[: cut % len(serialized)])


# ---- Results


def test_a_copy_that_is_a_result_of_its_own_must_stay():
    """Its users would be satisfied by the argument, but behind the program the argument holds another result."""
    stock = hlo.open("""HloModule results, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY main {
  donated = f32[64] parameter(0)
  part = f32[1] parameter(1)
  zero = s32[] constant(0)
  copied = f32[64] copy(donated)
  written = f32[64] dynamic-update-slice(donated, part, zero)
  ROOT results = (f32[64], f32[64]) tuple(written, copied)
}
""")
    assert plan_module(stock.proto.SerializeToString(), PlanOptions()).serialized is None
    plan = Plan(stock)
    plan.remove("copied", instead="donated")
    with pytest.raises(PlanError, match="written: overwrites 'donated', a result of 'main"):
        verify(stock, plan.bytes())


def test_a_writer_that_reads_its_memory_elsewhere_needs_the_copy():
    """A reversal in place would read what it has just written."""
    text = """HloModule reversed, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY main {
  donated = f32[64] parameter(0)
  copied = f32[64] copy(donated)
  ROOT written = f32[64] OPCODE(copied)
}
"""
    stock = hlo.open(text.replace("OPCODE(copied)", "reverse(copied), dimensions={0}"))
    plan = Plan(stock)
    plan.remove("copied", instead="donated")
    with pytest.raises(PlanError, match="written: reads 'donated' when 'written' may have overwritten it"):
        verify(stock, plan.bytes())

    stock = hlo.open(text.replace("OPCODE", "negate"))
    plan = Plan(stock)
    plan.remove("copied", instead="donated")
    verify(stock, plan.bytes())


@pytest.mark.parametrize("first", ["donated", "copied"])
def test_every_place_at_which_a_writer_reads_its_memory_counts(first):
    """It updates its argument in place through one operand; through the other it reads it backwards."""
    second = {"donated": "copied", "copied": "donated"}[first]
    target, source = ("p", "q") if first == "donated" else ("q", "p")
    stock = hlo.open(f"""HloModule twice, is_scheduled=true, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}
mixed {{
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  turned = f32[64] reverse({source}), dimensions={{0}}
  piece = f32[1] slice(turned), slice={{[0:1]}}
  start = s32[] constant(0)
  ROOT u = f32[64] dynamic-update-slice({target}, piece, start)
}}
ENTRY main {{
  donated = f32[64] parameter(0)
  copied = f32[64] copy(donated)
  ROOT written = f32[64] fusion({first}, {second}), kind=kLoop, calls=mixed
}}
""")
    verify(stock, serialize(stock, {}, {}))
    plan = Plan(stock)
    plan.remove("copied", instead="donated")
    with pytest.raises(PlanError, match="written: reads 'donated' when 'written' may have overwritten it"):
        verify(stock, plan.bytes())


def test_an_asynchronous_operation_that_writes_over_its_operand_starts_behind_other_readers():
    """XLA accepts it in front of them: nothing in the module says that it must wait."""
    stock = hlo.open("""HloModule asynchronous, is_scheduled=true
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
reduction {
  p = f32[64] parameter(0)
  ROOT r = f32[64] all-reduce(p), replica_groups={}, channel_id=1, to_apply=sum
}
ENTRY main {
  x = f32[64] parameter(0)
  fresh = f32[64] negate(x)
  read = f32[64] reverse(fresh), dimensions={0}
  start = ((f32[64]), f32[64]) async-start(fresh), calls=reduction, output_to_operand_aliasing={{1}: (0, {})}
  hidden = f32[64] sine(x), backend_config={"operation_queue_id":"0"}
  done = f32[64] async-done(start)
  ROOT results = (f32[64], f32[64], f32[64]) tuple(read, hidden, done)
}
""")
    verify(stock, serialize(stock, {}, {}))
    region = extract(stock, of(stock), stock.entry)
    node = {stock.instruction(id).name: n for n, ids in enumerate(region.members) for id in ids}
    assert node["read"] in region.graph.predecessors[node["start"]]
    plan = Plan(stock)
    plan.move("start", "read")
    with pytest.raises(PlanError, match="read: reads 'fresh' when 'r' may have overwritten it"):
        verify(stock, plan.bytes())


def test_branches_of_a_conditional_exclude_each_other():
    """One branch updates in place what the other one reads: only one of them runs."""
    stock = hlo.open("""HloModule branches, is_scheduled=true
first {
  x = f32[64] parameter(0)
  one = f32[1] constant({1})
  zero = s32[] constant(0)
  ROOT updated = f32[64] dynamic-update-slice(x, one, zero)
}
second {
  y = f32[64] parameter(0)
  turned = f32[64] reverse(y), dimensions={0}
  ROOT read = f32[64] negate(turned)
}
third {
  ROOT z = f32[64] parameter(0)
}
ENTRY main {
  which = s32[] parameter(0)
  kept = f32[64] parameter(1)
  fresh = f32[64] negate(kept)
  ROOT chosen = f32[64] conditional(which, fresh, fresh, fresh), branch_computations={third, first, second}
}
""")
    verify(stock, serialize(stock, {}, {}))
    planned = plan_module(stock.proto.SerializeToString(), PlanOptions())
    assert planned.record.lower_bound_bytes <= planned.record.temp_bytes


# ---- Random orders against an interpreter


@st.composite
def chains(draw):
    """Donated arrays, each overwritten step by step, and readers of any of its versions.

    Per array: the ways in which versions follow one another, and how many readers each version has.
    """
    array = st.lists(st.sampled_from(["update", "update", "loop", "negate", "reverse"]), min_size=1, max_size=4)
    links = draw(st.lists(array, min_size=1, max_size=3))
    readers = [draw(st.lists(st.integers(0, 2), min_size=len(a) + 1, max_size=len(a) + 1)) for a in links]
    return links, readers


def _text(links, readers):
    """The program; every version is read before the next one is written."""
    computations, body, results = [], [], []
    for a, kinds in enumerate(links):
        for v in range(len(kinds) + 1):
            if v:
                before, now, kind = f"v{a}_{v - 1}", f"v{a}_{v}", kinds[v - 1]
                if kind == "loop":
                    computations.append(_loop(now))
                    state = "(s32[], f32[64])"
                    body += [
                        f"{now}_zero = s32[] copy(zero)",
                        f"{now}_in = {state} tuple({now}_zero, {before})",
                        f"{now}_loop = {state} while({now}_in), condition={now}_condition, body={now}_body",
                        f"{now} = f32[64] get-tuple-element({now}_loop), index=1",
                    ]
                else:
                    operation = {
                        "update": f"dynamic-update-slice({before}, part, zero)",
                        "negate": f"negate({before})",
                        "reverse": f"reverse({before}), dimensions={{0}}",
                    }[kind]
                    body.append(f"{now} = f32[64] {operation}")
            for r in range(readers[a][v]):
                body.append(f"r{a}_{v}_{r} = f32[64] sine(v{a}_{v})")
                results.append(f"r{a}_{v}_{r}")
        results.insert(a, f"v{a}_{len(kinds)}")
    parameters = [f"v{a}_0 = f32[64] parameter({a})" for a in range(len(links))]
    parameters += [f"part = f32[1] parameter({len(links)})", "zero = s32[] constant(0)"]
    aliases = ", ".join(f"{{{a}}}: ({a}, {{}}, may-alias)" for a in range(len(links)))
    root = f"ROOT results = ({', '.join(['f32[64]'] * len(results))}) tuple({', '.join(results)})"
    lines = "\n  ".join([*parameters, *body, root])
    header = f"HloModule chains, is_scheduled=true, input_output_alias={{ {aliases} }}"
    return "\n".join([header, *computations, f"ENTRY main {{\n  {lines}\n}}\n"])


def _loop(name):
    return f"""
{name}_body {{
  {name}_s = (s32[], f32[64]) parameter(0)
  {name}_i = s32[] get-tuple-element({name}_s), index=0
  {name}_x = f32[64] get-tuple-element({name}_s), index=1
  {name}_one = s32[] constant(1)
  {name}_p = f32[1] constant({{1}})
  {name}_y = f32[64] dynamic-update-slice({name}_x, {name}_p, {name}_i)
  {name}_n = s32[] add({name}_i, {name}_one)
  ROOT {name}_t = (s32[], f32[64]) tuple({name}_n, {name}_y)
}}
{name}_condition {{
  {name}_s2 = (s32[], f32[64]) parameter(0)
  {name}_i2 = s32[] get-tuple-element({name}_s2), index=0
  {name}_end = s32[] constant(4)
  ROOT {name}_less = pred[] compare({name}_i2, {name}_end), direction=LT
}}"""


def _cells(kinds):
    """Which memory each version of an array is in: updates stay where they are, and the last one is in the argument."""
    cells = [0]
    for kind in kinds:
        cells.append(cells[-1] if kind in ("update", "loop") else cells[-1] + 1)
    return [0 if cell == cells[-1] else cell for cell in cells]


def _interpret(links, names):
    """Whether a sequence of instructions, by name, finds in memory whatever it reads."""
    cells = [_cells(kinds) for kinds in links]
    memory = [{0: 0} for _ in links]
    for name in names:
        version = name.split("_loop")[0] if name.endswith("_loop") else name
        array, _, rest = version[1:].partition("_")
        if name.startswith("r") and name != "results":
            v = int(rest.split("_")[0])
            if memory[int(array)].get(cells[int(array)][v]) != v:
                return False
        elif name[0] == "v" and not name.endswith(("_in", "_zero")):
            a, v = int(array), int(rest)
            kind = links[a][v - 1] if v else ""
            if not v or (kind == "loop") != name.endswith("_loop"):
                continue  # an argument, or a name of a loop's result
            if memory[a].get(cells[a][v - 1]) != v - 1:
                return False
            if kind == "reverse" and cells[a][v - 1] == cells[a][v]:
                return False  # reads at one end what it has written at the other
            memory[a][cells[a][v]] = v
    return all(memory[a][cells[a][-1]] == len(links[a]) for a in range(len(links)))


def _random_order(computation, rng):
    """Any order that operands allow."""
    waiting = {i.id: {o.id for o in i.operands} for i in computation.instructions}
    order = []
    while waiting:
        ready = [id for id, operands in waiting.items() if operands.isdisjoint(waiting)]
        order.append(rng.choice(ready))
        del waiting[order[-1]]
    return order


@given(chains(), st.integers(0, 1 << 30))
@settings(max_examples=250, derandomize=True, deadline=None)
def test_accepts_exactly_the_orders_that_an_interpreter_accepts(chain, seed):
    links, readers = chain
    stock = hlo.open(_text(links, readers))
    rng = random.Random(seed)
    stock_order = [i.id for i in stock.entry.sequence]
    for order in [stock_order, *(_random_order(stock.entry, rng) for _ in range(4))]:
        right = _interpret(links, [stock.instruction(id).name for id in order])
        try:
            verify(stock, serialize(stock, {}, {stock.entry.id: order}))
            accepted = True
        except PlanError:
            accepted = False
        assert accepted == right


@given(chains())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_the_planner_finds_no_order_that_an_interpreter_refuses(chain):
    links, readers = chain
    stock = hlo.open(_text(links, readers))
    if not _interpret(links, [i.name for i in stock.entry.sequence]):
        return
    planned = plan_module(stock.proto.SerializeToString(), PlanOptions(budget_seconds=0.01))
    if planned.serialized is not None:
        after = hlo.Module.from_bytes(planned.serialized, "plan")
        assert _interpret(links, [i.name for i in after.entry.sequence])
