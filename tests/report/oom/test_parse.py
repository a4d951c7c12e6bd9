"""Out-of-memory errors of compilers and runtimes: figures of messages in the wording of every platform."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xla_stalloc.report.oom.parse import OutOfMemory, is_exhausted, parse
from xla_stalloc.report.oom.tables import blocks

K, M, G = 2**10, 2**20, 2**30

TPU_COMPILE = """
jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space \
hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.

Total hbm usage >= 42.26G:
    reserved        528.00M
    program          41.22G
    arguments       unknown size

Output size unknown.

Program hbm requirement 41.22G:
    reserved           4.0K
    global           29.82M
    HLO temp         41.19G (24.2% utilization, 0.7% fragmentation (293.84M))

  Largest program allocations in hbm:

  1. Size: 32.00G
     Operator: op_name="jit(train_step)/layer/mod" source_file="/home/user/train.py" source_line=17
     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}
     Unpadded size: 1.00G
     Extra memory due to padding: 31.00G (32.0x expansion)
     XLA label: %copy.40488 = s32[8388608,8,4]{2,1,0:T(8,128)} copy(%get-tuple-element.32429)
     Allocation type: HLO temp
     ==========================

  2. Size: 2.00G
     Shape: f32[512,1024,1024]{2,1,0:T(8,128)}
     Unpadded size: 2.00G
     XLA label: %fusion.7 = f32[512,1024,1024]{2,1,0:T(8,128)} fusion(%p)
     ==========================
"""

GPU_RUN = """
2026-01-02 08:52:08.219469: W xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_1_bfc) ran out of memory \
trying to allocate 27.93GiB (rounded to 29995136256)requested by op
2026-01-02 08:52:08.219900: I xla/tsl/framework/bfc_allocator.cc:1160] Stats:
Limit:                     64424509440
InUse:                     40000000000
MaxInUse:                  41000000000
NumAllocs:                        1234
MaxAllocSize:              29000000000
Reserved:                            0
PeakReserved:                        0
LargestFreeBlock:                    0

jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 29995136000 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    6.00GiB
              constant allocation:         0B
        maybe_live_out allocation:    9.64GiB
     preallocated temp allocation:   27.93GiB
                 total allocation:   43.57GiB
              total fragmentation:  680.30MiB (1.52%)
Peak buffers:
        Buffer 1:
                Size: 4.00GiB
                Operator: op_name="jit(update)/mul" source_file="/home/user/models.py" source_line=689
                XLA Label: fusion
                Shape: f32[1024,1024,1024]
                ==========================

        Buffer 2:
                Size: 6.00GiB
                Entry Parameter Subshape: f32[1536,1024,1024]
                ==========================
"""

CUDA_ASYNC = """
E0102 08:52:08.1 123 cuda_malloc_async.cc:411] gpu_async_0 cuMemAllocAsync failed to allocate 134938000000 bytes: \
RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY: out of memory
 Reported by CUDA: Free memory/Total memory: 12670000000/197880000000
E0102 08:52:08.1 123 cuda_malloc_async.cc:416] Stats: Limit:                    148412000000
InUse:                     19510000000
MaxInUse:                 154447000000
"""


def found(text: str) -> OutOfMemory:
    told = parse(text)
    assert told is not None
    return told


def test_tpu_compilation() -> None:
    error = found(TPU_COMPILE)
    assert (error.platform, error.phase, error.space, error.program) == ("tpu", "compile", "hbm", "jit_train_step")
    assert (error.needed_bytes, error.limit_bytes) == (round(41.74 * G), 16 * G)
    assert error.parts["program"] == round(41.22 * G) and error.parts["reserved"] == 528 * M
    assert error.parts["hlo temp"] == round(41.19 * G) and "arguments" not in error.parts
    first, second = error.blocks
    assert (first.bytes, first.unpadded_bytes, first.label) == (32 * G, G, "%copy.40488")
    assert first.source == "/home/user/train.py:17" and first.shape.startswith("s32[8388608,8,4]")
    assert (second.bytes, second.label, second.source) == (2 * G, "%fusion.7", "")


def test_gpu_run_with_the_allocators_statistics() -> None:
    error = found(GPU_RUN)
    assert (error.platform, error.phase, error.allocator, error.program) == ("gpu", "run", "bfc", "jit_update")
    assert error.requested_bytes == 29995136000
    assert (error.limit_bytes, error.resident_bytes) == (64424509440, 40000000000)
    assert error.free_bytes == 24424509440 and error.largest_free_bytes is None
    assert error.parts["preallocated temp allocation"] == round(27.93 * G)
    assert [block.bytes for block in error.blocks] == [6 * G, 4 * G]
    assert error.blocks[1].source == "/home/user/models.py:689"


def test_cuda_async() -> None:
    error = found(CUDA_ASYNC)
    assert (error.platform, error.allocator, error.requested_bytes) == ("gpu", "cuda_async", 134938000000)
    assert (error.card_free_bytes, error.card_bytes) == (12670000000, 197880000000)
    assert (error.limit_bytes, error.resident_bytes) == (148412000000, 19510000000)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (
            "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
            "temporaries (20.52G) exceeds available HBM (15.75G). HLO module: jit_step.",
            {
                "platform": "tpu",
                "phase": "compile",
                "needed_bytes": round(20.52 * G),
                "limit_bytes": round(15.75 * G),
                "program": "jit_step",
            },
        ),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 512.5M of 7.48G hbm. Exceeded hbm "
            "capacity by 1.2G.",
            {"needed_bytes": round(512.5 * M), "limit_bytes": round(7.48 * G), "space": "hbm"},
        ),
        (
            "RESOURCE_EXHAUSTED: Aborting compilation early because it's unlikely to have enough memory. Requires "
            "3.84T, has 90.96G available.",
            {"phase": "compile", "needed_bytes": round(3.84 * 2**40), "limit_bytes": round(90.96 * G)},
        ),
        (
            "RESOURCE_EXHAUSTED: Compilation failed. Used 90.1G of 79.2G hbm.",
            {"phase": "compile", "needed_bytes": round(90.1 * G), "limit_bytes": round(79.2 * G)},
        ),
        (
            "JaxRuntimeError: RESOURCE_EXHAUSTED: Error loading program 'jit_embed': Attempting to reserve 29.49G at "
            "the bottom of memory. That was not possible. There are 147.64M free, 0B reserved, and 140.00M reservable.",
            {
                "platform": "tpu",
                "phase": "load",
                "program": "jit_embed",
                "requested_bytes": round(29.49 * G),
                "free_bytes": round(147.64 * M),
                "largest_free_bytes": 140 * M,
            },
        ),
        (
            "RESOURCE_EXHAUSTED: Error loading program 'jit_slice': Attempting to reserve 6.14G at the bottom of "
            "memory.",
            {"phase": "load", "program": "jit_slice", "requested_bytes": round(6.14 * G)},
        ),
        (
            "ValueError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 8.00M. That was "
            "not possible. There are 6.43M free.; (0x0x1_HBM0)",
            {
                "platform": "tpu",
                "phase": "run",
                "requested_bytes": 8 * M,
                "free_bytes": round(6.43 * M),
                "device": "0x0x1_HBM0",
            },
        ),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %kernel.18 = "
            "bf16[2]",
            {"platform": "tpu", "phase": "compile", "space": "vmem"},
        ),
        (
            "RESOURCE_EXHAUSTED: Allocation (size=134217728) would exceed memory (size=67108864) :: #allocation25",
            {"space": "vmem", "requested_bytes": 134217728, "limit_bytes": 67108864},
        ),
        (
            "RuntimeError: Resource exhausted: Failed to allocate request for 32.00MiB (33554432B) on device ordinal 0",
            {"requested_bytes": 33554432, "device": "0", "phase": "run"},
        ),
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.50GiB.",
            {"platform": "gpu", "requested_bytes": 3 * G // 2},
        ),
    ],
)
def test_messages(text: str, right: dict[str, Any]) -> None:
    assert is_exhausted(text)
    error = found(text)
    assert {name: getattr(error, name) for name in right} == right


def test_what_this_machine_says() -> None:
    with pytest.raises(Exception, match="RESOURCE_EXHAUSTED") as raised:
        jax.jit(lambda: jnp.zeros((2**44,), jnp.float32))().block_until_ready()
    error = found(str(raised.value))
    assert (error.platform, error.phase, error.requested_bytes) == ("cpu", "run", 2**46)


def test_the_error_counts_more_than_what_was_only_logged() -> None:
    logged = "W bfc_allocator.cc] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB (rounded to 1)\n"
    raised = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes.\n"
    for text in (logged + raised, raised + logged, logged + raised + "noise\n" + logged):
        assert found(text).requested_bytes == 4096
    assert found(logged).requested_bytes == G
    assert found(raised + raised.replace("4096", "5120")).requested_bytes == 5120


def test_what_is_printed_twice_is_listed_once() -> None:
    assert blocks(TPU_COMPILE + TPU_COMPILE) == blocks(TPU_COMPILE)


def test_other_errors() -> None:
    assert not is_exhausted("INVALID_ARGUMENT: no")
    assert parse("RESOURCE_EXHAUSTED: something else") is None
    assert parse("") is None


@given(st.text(), st.sampled_from([TPU_COMPILE, GPU_RUN, CUDA_ASYNC]), st.integers(0, 2000), st.integers(0, 2000))
def test_any_piece_of_a_log_is_read(noise: str, log: str, start: int, length: int) -> None:
    for text in (noise, log[start : start + length], log[:length] + noise + log[start:]):
        told = parse(text)
        assert told is None or told.message
