"""One plan on every host: what several processes compile together runs planned in all of them, or in none.

The first process plans. The others receive its plan through the key-value store of JAX's coordination service, check
its fingerprint against what their own compiler made, and apply it. When all have compiled, each says what it ended
with, and only if all say the same does the planned program run. The last word is a barrier of that service, which
either lets all pass or fails in all: no process can take another's silence for a yes.

A decision is kept for the life of the process, and the plan for that of the job: a process that compiles the program
again does as all did, without asking.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import jax

from xla_stalloc.hlo import Module
from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.inject.errors import in_short
from xla_stalloc.inject.program import Program
from xla_stalloc.plan.options import PlannedModule, PlanOptions

PATIENCE_SECONDS = 600.0
"""How long a process waits for the others, which may have had more to do before they compile this program."""

_LARGEST_MESSAGE = 3 << 20  # bytes; the service's transport takes 4 MiB
_NAMESPACE = "xla_stalloc"

Planner = Callable[[bytes, PlanOptions], PlannedModule]


class DisagreementError(RuntimeError):
    """This process cannot follow the plan of the first one."""


class Service(Protocol):
    """What is needed of JAX's coordination service."""

    def key_value_set_bytes(self, key: str, value: bytes, allow_overwrite: bool = False) -> None:
        """Sets a key; raises if it is set already, unless it may be overwritten."""

    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
        """The value of a key, as soon as it has one; raises after the timeout."""

    def wait_at_barrier(self, barrier_id: str, timeout_in_ms: int, process_ids: Any = None) -> None:
        """Returns when all have come; raises in all of them after the timeout."""


@dataclasses.dataclass(frozen=True)
class Vote:
    """What a process ended with.

    Attributes:
        digest: Of the order that its executable runs; "" for stock XLA's.
        reason: Why it is not planned, or "".
    """

    digest: str
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class Group:
    """The processes that compile one program together.

    Attributes:
        service: The coordination service.
        process: This process.
        processes: All of them, ascending; the first plans.
        key: Names program and processes, the same everywhere.
    """

    service: Service
    process: int
    processes: tuple[int, ...]
    key: str

    @property
    def leads(self) -> bool:
        """Whether this is the process that plans."""
        return self.process == self.processes[0]

    def plan(self, serialized: bytes, options: PlanOptions, planner: Planner) -> PlannedModule:
        """What `planner` decides in the first process, in every one of them.

        Raises:
            DisagreementError: The plan did not come, or does not fit what was compiled here.
            Exception: Whatever the planner raises, in the first process.
        """
        if self.leads:
            return self._lead(serialized, options, planner)
        from xla_stalloc.plan.memory_plan import MemoryPlan

        message = json.loads(self._receive())
        if reason := message.get("failed"):
            raise DisagreementError(f"process {self.processes[0]}: {reason}")
        if "plan" not in message:
            # The executable there came from a cache, or its plan is too long to send. Planning is deterministic, and
            # whether it is the same is asked at the end.
            return planner(serialized, options)
        plan = MemoryPlan.from_json(message["plan"], f"process {self.processes[0]}")
        planned = plan.apply(Module.from_bytes(serialized, f"process {self.process}"))
        return PlannedModule(planned if plan.orders or plan.removed_copies else None, plan.record)

    def _lead(self, serialized: bytes, options: PlanOptions, planner: Planner) -> PlannedModule:
        from xla_stalloc.plan.memory_plan import plan_of

        try:
            decided = planner(serialized, options)
        except Exception as error:
            self._send({"failed": f"planning failed: {in_short(error)}"})
            raise
        self._send({"plan": plan_of(Module.from_bytes(serialized, "compiler hook"), options, decided).to_json()})
        return decided

    def compiled(self) -> None:
        """To be called after the compile, whatever came of it: nobody waits for a plan that will not be made."""
        if self.leads:
            self._send({})

    def _send(self, message: dict[str, str]) -> None:
        data = zlib.compress(json.dumps(message).encode())
        if len(data) > _LARGEST_MESSAGE:
            data = zlib.compress(b"{}")
        try:
            self.service.key_value_set_bytes(f"{_NAMESPACE}/plan/{self.key}", data)
        except Exception as error:
            if "ALREADY_EXISTS" not in str(error):
                raise

    def _receive(self) -> bytes:
        try:
            data = self.service.blocking_key_value_get_bytes(f"{_NAMESPACE}/plan/{self.key}", _milliseconds())
        except Exception as error:
            raise DisagreementError(f"process {self.processes[0]} sent no plan: {in_short(error)}") from error
        return zlib.decompress(data)

    def settle(self, vote: Vote) -> str:
        """Asks the others; "" if all ended with the same order, else why the planned one must not run here.

        The first answer for a program holds for the life of the process.
        """
        with _lock_of(self.key):
            if self.key not in _decided:
                _decided[self.key] = self._decide(vote)
            agreed, reason = _decided[self.key]
        if reason or vote.digest == agreed:
            return reason
        return "compiled again, the program got another order than the processes had agreed on"

    def _decide(self, vote: Vote) -> tuple[str, str]:
        """The digest that all have, and ""; or why there is none."""
        text = json.dumps(dataclasses.asdict(vote)).encode()
        try:
            self.service.key_value_set_bytes(self._vote_key(self.process), text, allow_overwrite=True)
            self.service.wait_at_barrier(f"{_NAMESPACE}/{self.key}", _milliseconds(), list(self.processes))
        except Exception as error:
            return "", f"not all of processes {self.processes} answered: {in_short(error)}"
        # All were given before the barrier. If the service dies now, the job dies with it.
        votes = {process: self._vote_of(process) for process in self.processes}
        digests = {vote.digest for vote in votes.values()}
        if len(digests) == 1:
            return digests.pop(), ""
        for process, other in votes.items():
            if not other.digest:
                return "", f"process {process} runs stock XLA's order ({other.reason or 'no reason given'})"
        another = next(process for process, other in votes.items() if other.digest != votes[self.processes[0]].digest)
        return "", f"process {another} found another order than process {self.processes[0]}"

    def _vote_key(self, process: int) -> str:
        return f"{_NAMESPACE}/vote/{self.key}/{process}"

    def _vote_of(self, process: int) -> Vote:
        text = self.service.blocking_key_value_get_bytes(self._vote_key(process), _milliseconds())
        return Vote(**json.loads(text))


_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_locks_lock = threading.Lock()
_decided: dict[str, tuple[str, str]] = {}
_groups: dict[str, Group] = {}


def _lock_of(key: str) -> threading.Lock:
    with _locks_lock:
        return _locks[key]


def _milliseconds() -> int:
    return int(PATIENCE_SECONDS * 1000)


def group_of(program: Program, options: PlanOptions) -> Group:
    """The processes that have to agree on a program.

    Raises:
        DisagreementError: They have no way to talk to each other.
    """
    service = coordination_service()
    if service is None:
        raise DisagreementError(
            f"processes {program.processes} cannot agree on a plan without JAX's coordination service; call "
            "jax.distributed.initialize() first"
        )
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((options, sorted(program.xla_options.items()), program.devices)).encode())
    # Without source lines, which may differ between hosts.
    program.computation.operation.print(file=_Hashed(digest), enable_debug_info=False, binary=True)
    group = Group(service, jax.process_index(), program.processes, digest.hexdigest())
    _groups[group.key] = group
    return group


def group_named(key: str) -> Group:
    """The group of this process with this `Group.key`.

    Raises:
        DisagreementError: There is none.
    """
    try:
        return _groups[key]
    except KeyError:
        raise DisagreementError(f"the program was marked for processes that are not of this job ({key})") from None


def coordination_service() -> Service | None:
    """The client of JAX's coordination service; None before ``jax.distributed.initialize()``.

    Private to JAX, which offers no other way to it: without it, nothing is planned over several processes.
    """
    try:
        from jax._src import distributed

        service: Service | None = distributed.global_state.client
    except (ImportError, AttributeError):
        return None
    return service


def digest_of(serialized: bytes) -> str:
    """A digest of the order in which a serialized, scheduled ``HloModuleProto`` runs its instructions."""
    module = hlo_pb2.HloModuleProto.FromString(serialized)
    names = {i.id: i.name for computation in module.computations for i in computation.instructions}
    digest = hashlib.blake2b(digest_size=16)
    for computation in module.computations:
        sequence = module.schedule.sequences.get(computation.id)
        digest.update(f"\n{computation.name}:".encode())
        order = sequence.instruction_ids if sequence is not None else ()
        digest.update(" ".join(names.get(i, "") for i in order).encode())
    return digest.hexdigest()


class _Hashed:
    """A file that only hashes what is written."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def write(self, data: bytes) -> None:
        self._digest.update(data)
