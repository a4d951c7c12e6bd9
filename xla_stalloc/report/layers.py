"""Which layer of the model an instruction belongs to."""

from __future__ import annotations

import re

from xla_stalloc.hlo import Instruction
from xla_stalloc.lifetimes import Lifetimes

# A name with a number: layers_3, block3, h.12, Dense_0 in a scope; ['layers'][3], .blocks[3] in an argument's name.
_IN_SCOPE = re.compile(r"([A-Za-z][A-Za-z_]*?)[_.]?(\d+)$")
_IN_ARGUMENT = re.compile(r"([A-Za-z_]\w*)(?:['\"]?\])?\[(\d+)\]|['\".]([A-Za-z][A-Za-z_]*?[_]?\d+)(?:['\"\].\[]|$)")
_DIGIT = re.compile(r"\d")
_SCOPE_OF = re.compile(r"^(?:transpose|jvp|vmap|remat|checkpoint|rematted_computation)\((.*)\)$")
_LISTS = re.compile(r"layer|block|stage|expert|cell|(^|_)h$|encoder|decoder", re.IGNORECASE)
_NAMES = re.compile(r"[A-Za-z_]\w*")
_GENERIC = re.compile(
    r"params?|kernel|bias|scale|embedding|opt_state|state|st|mu|nu|[a-z]|w|weights?|batch_stats|variables|\w+_state"
)
_DATA = re.compile(r"dot|conv|add|mul|iota|reduce|gather|scatter|broadcast|concatenate|slice|sub|while|cond|body")


def in_scope(op_name: str) -> str:
    """The layer that the path of an operation names, e.g. ``layers_3`` of ``jit(step)/jvp(layers_3)/dot_general``.

    The outermost scope that is numbered; ``""`` if there is none. The last part is the operation itself.
    """
    path = op_name.rpartition("/")[0]
    if not _DIGIT.search(path):
        return ""
    for part in path.split("/"):
        if not _DIGIT.search(part) or part.startswith(("jit(", "pjit(", "xla_")):
            continue
        while inner := _SCOPE_OF.match(part):
            part = inner[1]
        for name in part.split("/"):
            if (match := _IN_SCOPE.match(name)) and not _DATA.fullmatch(match[1].rstrip("_")):
                return name
    return ""


def in_argument(name: str) -> str:
    """The layer that the name of an argument tells, e.g. ``layers[3]`` of ``state['params']['layers'][3]['wq']``.

    Without a number it is the name of the stack of layers or of the module, ``head`` of ``params['head']['kernel']``;
    ``""`` for an argument that is no part of anything.
    """
    for match in _IN_ARGUMENT.finditer(name):
        if match[3]:
            return match[3]
        if _LISTS.search(match[1]):
            return f"{match[1]}[{match[2]}]"
    parts = [part for part in _NAMES.findall(name)[1:] if not _GENERIC.fullmatch(part)]
    return next((part for part in parts if _LISTS.search(part)), parts[-1] if parts else "")


def layers(lifetimes: Lifetimes) -> dict[int, str]:
    """Instruction id -> its layer, ``""`` if nothing tells, for all computations that run in sequence.

    Where scopes say nothing, an instruction belongs to the layer whose weights it reads, else to that of its data.
    """
    entry = lifetimes.module.entry
    found: dict[int, str] = {}
    weights: set[int] = set()  # instructions that are made from the arguments of one layer alone
    for computation in lifetimes.dataflow.computations:
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                layer = in_argument(instruction.op_name) if computation is entry else ""
                if layer:
                    weights.add(instruction.id)
            else:
                layer = in_scope(instruction.op_name) or _inherited(instruction, found, weights)
                known = [operand for operand in instruction.operands if operand.opcode != "constant"]
                if known and all(o.id in weights for o in known) and len({found[o.id] for o in known}) == 1:
                    weights.add(instruction.id)
            found[instruction.id] = layer
    return found


def _inherited(instruction: Instruction, found: dict[int, str], weights: set[int]) -> str:
    if instruction.opcode in ("tuple", "while", "call", "conditional"):
        return ""  # of many layers
    # Scalars, a loss or the norm of all gradients, are made of everything.
    told = [operand for operand in instruction.operands if found.get(operand.id) and operand.shape.dimensions]
    own = next((operand for operand in told if operand.id in weights), None)
    chosen = own or (told[-1] if told else None)
    return found[chosen.id] if chosen else ""
