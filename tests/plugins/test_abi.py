"""Our declaration of the PJRT C ABI against tables that pypjrt generated from the original header."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xla_stalloc.inject import vendors

pytest.importorskip("pypjrt", reason="its tables are what the declaration is held against")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def original() -> Any:
    from pypjrt import _abi

    return _abi.load(*_abi.available()[0])[0]


@pytest.fixture(scope="module")
def declared(compile_cpp: Callable[..., Path]) -> list[list[str]]:
    printed = subprocess.run([compile_cpp(HERE / "abi_layout.cc")], capture_output=True, text=True, check=True)
    return [line.split() for line in printed.stdout.splitlines()]


def test_slots_are_where_the_header_has_them(declared: list[list[str]], original: Any) -> None:
    slots = {name: int(index) for kind, name, index, *_ in declared if kind == "slot"}
    assert len(slots) > 20
    assert slots == {name: original.SLOT[name] for name in slots}


def test_fields_are_where_the_header_has_them(declared: list[list[str]], original: Any) -> None:
    fields = {
        (struct, name): int(offset) for kind, struct, name, *rest in declared if kind == "field" for offset in rest
    }
    assert len(fields) > 50
    assert fields == {(struct, name): getattr(getattr(original, struct), name).offset for struct, name in fields}


def test_structs_are_no_smaller_than_older_headers_want(declared: list[list[str]], original: Any) -> None:
    # A struct may end earlier than the newest one: fields are appended, and vendors take what callers know of.
    appended = {"PJRT_Device_MemoryStats", "PJRT_Client_Create", "PJRT_Executable_DeserializeAndLoad"}
    for kind, name, size, *_ in declared:
        if kind == "size" and name not in appended:
            assert int(size) >= getattr(original, f"{name}_Args_STRUCT_SIZE"), name


WRAP = """
import ctypes, json, os, sys
from xla_stalloc.inject import native

class Api(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("version_size", ctypes.c_size_t),
                ("version_extensions", ctypes.c_void_p), ("major", ctypes.c_int), ("minor", ctypes.c_int)]

def table(library):
    library.GetPjrtApi.restype = ctypes.POINTER(Api)
    api = library.GetPjrtApi()
    count = (api.contents.struct_size - 40) // 8
    slots = (ctypes.c_void_p * count).from_address(ctypes.addressof(api.contents) + 40)
    return api.contents, list(slots)

library = native.library()
library.stalloc_wrap(os.fsencode(sys.argv[1] if len(sys.argv) > 1 else os.environ["VENDOR"]), None)
ours, our_slots = table(library)
theirs, their_slots = table(ctypes.CDLL(os.environ["VENDOR"]))
print(json.dumps({
    "same_head": all(getattr(ours, f) == getattr(theirs, f) for f, _ in Api._fields_),
    "slots": len(our_slots),
    "changed": [i for i, (a, b) in enumerate(zip(our_slots, their_slots, strict=True)) if a != b],
    "missing": [i for i, b in enumerate(their_slots) if b is None],
}))
"""


@pytest.mark.parametrize("name", ["cpu", "cuda", "tpu"])
def test_a_wrapped_table_differs_only_in_what_is_taken_over(
    name: str, run: Callable[..., Any], wrapper: Path, original: Any, declared: list[list[str]]
) -> None:
    try:
        vendor = vendors.find(name)
    except vendors.NoVendorError as error:
        pytest.skip(str(error))
    result = run(WRAP, VENDOR=str(vendor.path), TPU_SKIP_MDS_QUERY="1")
    assert result["same_head"], "size, version and extensions are the vendor's"
    taken_over = {
        original.SLOT[slot]
        for slot in (
            "PJRT_Client_Create",
            "PJRT_Client_Destroy",
            "PJRT_Client_Compile",
            "PJRT_Client_BufferFromHostBuffer",
            "PJRT_Client_Load",
            "PJRT_Device_MemoryStats",
            "PJRT_Device_ClearMemoryStats",
            "PJRT_Executable_DeserializeAndLoad",
            "PJRT_LoadedExecutable_Destroy",
            "PJRT_LoadedExecutable_Execute",
            "PJRT_Buffer_CopyToDevice",
            "PJRT_Buffer_CopyToMemory",
            "PJRT_Client_CreateUninitializedBuffer",
            "PJRT_Buffer_Destroy",
        )
    }
    there = {slot for slot in taken_over if slot < result["slots"] and slot not in result["missing"]}
    assert set(result["changed"]) == there


def test_a_shorter_table_is_copied_as_far_as_it_goes(
    run: Callable[..., Any], wrapper: Path, compile_cpp: Callable[..., Path]
) -> None:
    # A vendor of an older version: 90 slots, of which slot 55 (execute) is missing and nothing lies behind the table.
    vendor = compile_cpp(HERE / "short_vendor.cc", flags=("-shared", "-fPIC"))
    result = run(WRAP, VENDOR=str(vendor))
    assert result["same_head"]
    assert result["slots"] == 90
    assert result["missing"] == [55]
    assert 55 not in result["changed"]
    assert 20 in result["changed"]
    assert max(result["changed"]) < 90


def test_another_major_version_is_refused_by_name(run: Callable[..., Any], wrapper: Path, compile_cpp: Any) -> None:
    vendor = compile_cpp(HERE / "short_vendor.cc", flags=("-shared", "-fPIC", "-DMAJOR_VERSION=1"))
    program = "import jax, json\ntry: jax.devices()\nexcept RuntimeError as e: print(json.dumps(str(e)))"
    said = run(program, JAX_PLATFORMS="stalloc", XLA_STALLOC_WRAPS=str(vendor))
    assert f"{vendor} speaks PJRT 1.3; version 0 is known here" in said
