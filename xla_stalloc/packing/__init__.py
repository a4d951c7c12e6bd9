"""The spatial lever: offsets for items that live for a while. Knows nothing of HLO."""

from xla_stalloc.packing.best_fit import HeapItem, Packed, best_fit
from xla_stalloc.packing.first_fit import first_fit
from xla_stalloc.packing.verify import PlacementError, verify_placement

__all__ = ["HeapItem", "Packed", "PlacementError", "best_fit", "first_fit", "verify_placement"]
