"""Facts of accelerators, from the vendors' data sheets: what the compilers need to know, and how much memory there is.

GPUs: NVIDIA's data sheets of V100 SXM2, A100 SXM, H100 SXM, H200 SXM, HGX B200 and GB200 NVL72, and the table of
compute capabilities in the CUDA C++ Programming Guide. TPUs: what libtpu 0.0.50 itself names as available memory when a
program does not fit; a little less than the data sheets' 8, 16, 16, 16, 95, 32 and 96 GB per core or chip, because the
runtime keeps some.
"""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 2**30
_KIB = 2**10


@dataclass(frozen=True, slots=True)
class Tpu:
    """A generation of TPUs.

    Attributes:
        name: as libtpu calls it.
        memory_bytes: of HBM that a program may use, per device.
        devices_per_chip: how many devices JAX shows for one chip of the topology.
    """

    name: str
    memory_bytes: int
    devices_per_chip: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A card of NVIDIA's.

    Attributes:
        name: as in topologies, in lower case.
        model: what the driver would call it.
        capability: compute capability, major and minor.
        memory_bytes: of the card.
        bandwidth: bytes per second from and to its memory.
        multiprocessors: streaming multiprocessors that are switched on.
        fp32_units: per multiprocessor.
        clock_ghz: highest boost clock.
        l2_bytes: of the L2 cache.
        shared_bytes: shared memory of a multiprocessor.
    """

    name: str
    model: str
    capability: tuple[int, int]
    memory_bytes: int
    bandwidth: int
    multiprocessors: int
    fp32_units: int
    clock_ghz: float
    l2_bytes: int
    shared_bytes: int

    def target_config(self) -> str:
        """XLA's `GpuTargetConfigProto` as text: what its CUDA compiler asks a driver for when there is a card."""
        major, minor = self.capability
        # All cards since Volta share the limits of a block; CUDA keeps 1 KiB of shared memory from Ampere on.
        opt_in = self.shared_bytes - (_KIB if major >= 8 else 0)
        return f"""
            gpu_device_info {{
              name: "{self.model}"
              device_vendor: "NVIDIA Corporation"
              cuda_compute_capability {{ major: {major} minor: {minor} }}
              device_memory_size: {self.memory_bytes}
              memory_bandwidth: {self.bandwidth}
              core_count: {self.multiprocessors}
              fpus_per_core: {self.fp32_units}
              clock_rate_ghz: {self.clock_ghz}
              l2_cache_size: {self.l2_bytes}
              shared_memory_per_core: {self.shared_bytes}
              shared_memory_per_block: {48 * _KIB}
              shared_memory_per_block_optin: {opt_in}
              threads_per_warp: 32
              threads_per_block_limit: 1024
              threads_per_core_limit: 2048
              registers_per_core_limit: 65536
              registers_per_block_limit: 65536
              block_dim_limit_x: 2147483647
              block_dim_limit_y: 65535
              block_dim_limit_z: 65535
              thread_dim_limit_x: 1024
              thread_dim_limit_y: 1024
              thread_dim_limit_z: 64
              device_address_bits: 64
              driver_version: "12.9.0"
              runtime_version: "12.9.0"
              compile_time_toolkit_version: "12.9.0"
              dnn_version: "9.10.0"
            }}
            platform_name: "CUDA"
            dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
            device_description_str: "{self.model}"
        """


TPUS = {
    chip.name: chip
    for chip in (
        Tpu("v2", int(7.48 * _GIB), devices_per_chip=2),
        Tpu("v3", int(15.48 * _GIB), devices_per_chip=2),
        Tpu("v4", int(15.25 * _GIB), devices_per_chip=2),
        Tpu("v5e", int(15.75 * _GIB)),
        Tpu("v5p", int(95.73 * _GIB)),
        Tpu("v6e", int(31.24 * _GIB)),
        Tpu("tpu7x", int(94.74 * _GIB), devices_per_chip=2),
    )
}

GPUS = {
    card.name: card
    for card in (
        Gpu(
            name="v100",
            model="Tesla V100-SXM2-32GB",
            capability=(7, 0),
            memory_bytes=32 * _GIB,
            bandwidth=900 * 10**9,
            multiprocessors=80,
            fp32_units=64,
            clock_ghz=1.53,
            l2_bytes=6 * _KIB**2,
            shared_bytes=96 * _KIB,
        ),
        Gpu(
            name="a100",
            model="NVIDIA A100-SXM4-80GB",
            capability=(8, 0),
            memory_bytes=80 * _GIB,
            bandwidth=2039 * 10**9,
            multiprocessors=108,
            fp32_units=64,
            clock_ghz=1.41,
            l2_bytes=40 * _KIB**2,
            shared_bytes=164 * _KIB,
        ),
        Gpu(
            name="h100",
            model="NVIDIA H100 80GB HBM3",
            capability=(9, 0),
            memory_bytes=80 * 10**9,
            bandwidth=3350 * 10**9,
            multiprocessors=132,
            fp32_units=128,
            clock_ghz=1.98,
            l2_bytes=50 * _KIB**2,
            shared_bytes=228 * _KIB,
        ),
        Gpu(
            name="h200",
            model="NVIDIA H200",
            capability=(9, 0),
            memory_bytes=141 * 10**9,
            bandwidth=4800 * 10**9,
            multiprocessors=132,
            fp32_units=128,
            clock_ghz=1.98,
            l2_bytes=50 * _KIB**2,
            shared_bytes=228 * _KIB,
        ),
        Gpu(
            name="b200",
            model="NVIDIA B200",
            capability=(10, 0),
            memory_bytes=180 * 10**9,
            bandwidth=8000 * 10**9,
            multiprocessors=148,
            fp32_units=128,
            clock_ghz=1.965,
            l2_bytes=126 * _KIB**2,
            shared_bytes=228 * _KIB,
        ),
        Gpu(
            name="gb200",
            model="NVIDIA GB200",
            capability=(10, 0),
            memory_bytes=186 * 10**9,
            bandwidth=8000 * 10**9,
            multiprocessors=152,
            fp32_units=128,
            clock_ghz=2.062,
            l2_bytes=126 * _KIB**2,
            shared_bytes=228 * _KIB,
        ),
    )
}
