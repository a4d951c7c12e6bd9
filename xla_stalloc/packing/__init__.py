"""The spatial lever: offsets for items that live for a while. Knows nothing of HLO."""

from xla_stalloc.packing.best_fit import HeapItem, Packed, best_fit
from xla_stalloc.packing.first_fit import first_fit
from xla_stalloc.packing.placement import Placement, verify
from xla_stalloc.packing.problem import Heap, Problem, Region
from xla_stalloc.packing.solve import solve
from xla_stalloc.packing.verify import PlacementError, verify_placement

__all__ = [
    "Heap",
    "HeapItem",
    "Packed",
    "Placement",
    "PlacementError",
    "Problem",
    "Region",
    "best_fit",
    "first_fit",
    "solve",
    "verify",
    "verify_placement",
]
