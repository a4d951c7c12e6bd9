"""The plan of a module: found, verified, explained, kept in a file.

`xla_stalloc.plan` is both this package and, since it can be called, the function of the public surface.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xla_stalloc.plan.memory_plan import MemoryPlan


class _Package(types.ModuleType):
    def __call__(self, source: Any, **options: Any) -> MemoryPlan:
        """See `xla_stalloc.plan.memory_plan.plan`."""
        from xla_stalloc.plan.memory_plan import plan

        return plan(source, **options)


sys.modules[__name__].__class__ = _Package
