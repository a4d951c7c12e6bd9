from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExecutableAndOptionsProto(_message.Message):
    __slots__ = ("serialized_executable", "compile_options", "pjrt_client_name")
    SERIALIZED_EXECUTABLE_FIELD_NUMBER: _ClassVar[int]
    COMPILE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PJRT_CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    serialized_executable: bytes
    compile_options: bytes
    pjrt_client_name: bytes
    def __init__(self, serialized_executable: _Optional[bytes] = ..., compile_options: _Optional[bytes] = ..., pjrt_client_name: _Optional[bytes] = ...) -> None: ...

class CompilationResultProto(_message.Message):
    __slots__ = ("hlo_module", "buffer_assignment", "entry_function_name", "obj_files_kind", "thunk_sequence", "compiled_symbols", "object_files", "target_machine_options", "data_layout")
    HLO_MODULE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FUNCTION_NAME_FIELD_NUMBER: _ClassVar[int]
    OBJ_FILES_KIND_FIELD_NUMBER: _ClassVar[int]
    THUNK_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COMPILED_SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FILES_FIELD_NUMBER: _ClassVar[int]
    TARGET_MACHINE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DATA_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    hlo_module: bytes
    buffer_assignment: bytes
    entry_function_name: bytes
    obj_files_kind: int
    thunk_sequence: bytes
    compiled_symbols: _containers.RepeatedScalarFieldContainer[bytes]
    object_files: _containers.RepeatedScalarFieldContainer[bytes]
    target_machine_options: bytes
    data_layout: bytes
    def __init__(self, hlo_module: _Optional[bytes] = ..., buffer_assignment: _Optional[bytes] = ..., entry_function_name: _Optional[bytes] = ..., obj_files_kind: _Optional[int] = ..., thunk_sequence: _Optional[bytes] = ..., compiled_symbols: _Optional[_Iterable[bytes]] = ..., object_files: _Optional[_Iterable[bytes]] = ..., target_machine_options: _Optional[bytes] = ..., data_layout: _Optional[bytes] = ...) -> None: ...

class AllocationsProto(_message.Message):
    __slots__ = ("logical_buffers", "buffer_aliases", "buffer_allocations", "heap_simulator_traces", "peak_buffers")
    LOGICAL_BUFFERS_FIELD_NUMBER: _ClassVar[int]
    BUFFER_ALIASES_FIELD_NUMBER: _ClassVar[int]
    BUFFER_ALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    HEAP_SIMULATOR_TRACES_FIELD_NUMBER: _ClassVar[int]
    PEAK_BUFFERS_FIELD_NUMBER: _ClassVar[int]
    logical_buffers: _containers.RepeatedScalarFieldContainer[bytes]
    buffer_aliases: _containers.RepeatedScalarFieldContainer[bytes]
    buffer_allocations: _containers.RepeatedCompositeFieldContainer[BufferAllocationProto]
    heap_simulator_traces: _containers.RepeatedScalarFieldContainer[bytes]
    peak_buffers: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, logical_buffers: _Optional[_Iterable[bytes]] = ..., buffer_aliases: _Optional[_Iterable[bytes]] = ..., buffer_allocations: _Optional[_Iterable[_Union[BufferAllocationProto, _Mapping]]] = ..., heap_simulator_traces: _Optional[_Iterable[bytes]] = ..., peak_buffers: _Optional[_Iterable[bytes]] = ...) -> None: ...

class BufferAllocationProto(_message.Message):
    __slots__ = ("index", "size", "is_thread_local", "is_entry_computation_parameter", "parameter_number", "maybe_live_out", "color", "assigned", "parameter_shape_index", "is_tuple", "is_constant", "is_parameter_aliased_with_output")
    class Assigned(_message.Message):
        __slots__ = ("logical_buffer_id", "offset", "size", "element_type")
        LOGICAL_BUFFER_ID_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        ELEMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
        logical_buffer_id: int
        offset: int
        size: int
        element_type: int
        def __init__(self, logical_buffer_id: _Optional[int] = ..., offset: _Optional[int] = ..., size: _Optional[int] = ..., element_type: _Optional[int] = ...) -> None: ...
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    IS_THREAD_LOCAL_FIELD_NUMBER: _ClassVar[int]
    IS_ENTRY_COMPUTATION_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_NUMBER_FIELD_NUMBER: _ClassVar[int]
    MAYBE_LIVE_OUT_FIELD_NUMBER: _ClassVar[int]
    COLOR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNED_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SHAPE_INDEX_FIELD_NUMBER: _ClassVar[int]
    IS_TUPLE_FIELD_NUMBER: _ClassVar[int]
    IS_CONSTANT_FIELD_NUMBER: _ClassVar[int]
    IS_PARAMETER_ALIASED_WITH_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    index: int
    size: int
    is_thread_local: bool
    is_entry_computation_parameter: bool
    parameter_number: int
    maybe_live_out: bool
    color: int
    assigned: _containers.RepeatedCompositeFieldContainer[BufferAllocationProto.Assigned]
    parameter_shape_index: _containers.RepeatedScalarFieldContainer[int]
    is_tuple: bool
    is_constant: bool
    is_parameter_aliased_with_output: bool
    def __init__(self, index: _Optional[int] = ..., size: _Optional[int] = ..., is_thread_local: bool = ..., is_entry_computation_parameter: bool = ..., parameter_number: _Optional[int] = ..., maybe_live_out: bool = ..., color: _Optional[int] = ..., assigned: _Optional[_Iterable[_Union[BufferAllocationProto.Assigned, _Mapping]]] = ..., parameter_shape_index: _Optional[_Iterable[int]] = ..., is_tuple: bool = ..., is_constant: bool = ..., is_parameter_aliased_with_output: bool = ...) -> None: ...

class SliceProto(_message.Message):
    __slots__ = ("offset", "size", "buffer_allocation_index", "element_type")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_ALLOCATION_INDEX_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    offset: int
    size: int
    buffer_allocation_index: int
    element_type: int
    def __init__(self, offset: _Optional[int] = ..., size: _Optional[int] = ..., buffer_allocation_index: _Optional[int] = ..., element_type: _Optional[int] = ...) -> None: ...

class ShapedSliceProto(_message.Message):
    __slots__ = ("slice", "shape")
    SLICE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    slice: SliceProto
    shape: bytes
    def __init__(self, slice: _Optional[_Union[SliceProto, _Mapping]] = ..., shape: _Optional[bytes] = ...) -> None: ...

class ShapeSliceProto(_message.Message):
    __slots__ = ("shape", "slice")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SLICE_FIELD_NUMBER: _ClassVar[int]
    shape: bytes
    slice: SliceProto
    def __init__(self, shape: _Optional[bytes] = ..., slice: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class ThunkSequenceProto(_message.Message):
    __slots__ = ("thunks", "thunk_resources")
    THUNKS_FIELD_NUMBER: _ClassVar[int]
    THUNK_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    thunks: _containers.RepeatedCompositeFieldContainer[ThunkProto]
    thunk_resources: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, thunks: _Optional[_Iterable[_Union[ThunkProto, _Mapping]]] = ..., thunk_resources: _Optional[_Iterable[bytes]] = ...) -> None: ...

class InfoProto(_message.Message):
    __slots__ = ("op_name", "module_name", "module_id")
    OP_NAME_FIELD_NUMBER: _ClassVar[int]
    MODULE_NAME_FIELD_NUMBER: _ClassVar[int]
    MODULE_ID_FIELD_NUMBER: _ClassVar[int]
    op_name: str
    module_name: bytes
    module_id: int
    def __init__(self, op_name: _Optional[str] = ..., module_name: _Optional[bytes] = ..., module_id: _Optional[int] = ...) -> None: ...

class ThunkProto(_message.Message):
    __slots__ = ("kind", "info", "call_thunk", "conditional_thunk", "sort_thunk", "xnn_fusion_thunk", "dot_thunk", "rng_get_and_update_state_thunk", "top_k_thunk", "while_thunk", "kernel_thunk", "copy_thunk", "fft_thunk", "infeed_thunk", "outfeed_thunk", "custom_call_thunk", "convolution_thunk", "collective_thunk", "partition_id_thunk", "replica_id_thunk", "ynn_fusion_thunk", "rng_seed_thunk")
    KIND_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    CALL_THUNK_FIELD_NUMBER: _ClassVar[int]
    CONDITIONAL_THUNK_FIELD_NUMBER: _ClassVar[int]
    SORT_THUNK_FIELD_NUMBER: _ClassVar[int]
    XNN_FUSION_THUNK_FIELD_NUMBER: _ClassVar[int]
    DOT_THUNK_FIELD_NUMBER: _ClassVar[int]
    RNG_GET_AND_UPDATE_STATE_THUNK_FIELD_NUMBER: _ClassVar[int]
    TOP_K_THUNK_FIELD_NUMBER: _ClassVar[int]
    WHILE_THUNK_FIELD_NUMBER: _ClassVar[int]
    KERNEL_THUNK_FIELD_NUMBER: _ClassVar[int]
    COPY_THUNK_FIELD_NUMBER: _ClassVar[int]
    FFT_THUNK_FIELD_NUMBER: _ClassVar[int]
    INFEED_THUNK_FIELD_NUMBER: _ClassVar[int]
    OUTFEED_THUNK_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_CALL_THUNK_FIELD_NUMBER: _ClassVar[int]
    CONVOLUTION_THUNK_FIELD_NUMBER: _ClassVar[int]
    COLLECTIVE_THUNK_FIELD_NUMBER: _ClassVar[int]
    PARTITION_ID_THUNK_FIELD_NUMBER: _ClassVar[int]
    REPLICA_ID_THUNK_FIELD_NUMBER: _ClassVar[int]
    YNN_FUSION_THUNK_FIELD_NUMBER: _ClassVar[int]
    RNG_SEED_THUNK_FIELD_NUMBER: _ClassVar[int]
    kind: str
    info: InfoProto
    call_thunk: CallThunkProto
    conditional_thunk: ConditionalThunkProto
    sort_thunk: SortThunkProto
    xnn_fusion_thunk: XnnFusionThunkProto
    dot_thunk: DotThunkProto
    rng_get_and_update_state_thunk: RngGetAndUpdateStateThunkProto
    top_k_thunk: TopKThunkProto
    while_thunk: WhileThunkProto
    kernel_thunk: KernelThunkProto
    copy_thunk: CopyThunkProto
    fft_thunk: FftThunkProto
    infeed_thunk: InfeedThunkProto
    outfeed_thunk: OutfeedThunkProto
    custom_call_thunk: CustomCallThunkProto
    convolution_thunk: ConvolutionThunkProto
    collective_thunk: CollectiveThunkProto
    partition_id_thunk: PartitionIdThunkProto
    replica_id_thunk: ReplicaIdThunkProto
    ynn_fusion_thunk: YnnFusionThunkProto
    rng_seed_thunk: RngSeedThunkProto
    def __init__(self, kind: _Optional[str] = ..., info: _Optional[_Union[InfoProto, _Mapping]] = ..., call_thunk: _Optional[_Union[CallThunkProto, _Mapping]] = ..., conditional_thunk: _Optional[_Union[ConditionalThunkProto, _Mapping]] = ..., sort_thunk: _Optional[_Union[SortThunkProto, _Mapping]] = ..., xnn_fusion_thunk: _Optional[_Union[XnnFusionThunkProto, _Mapping]] = ..., dot_thunk: _Optional[_Union[DotThunkProto, _Mapping]] = ..., rng_get_and_update_state_thunk: _Optional[_Union[RngGetAndUpdateStateThunkProto, _Mapping]] = ..., top_k_thunk: _Optional[_Union[TopKThunkProto, _Mapping]] = ..., while_thunk: _Optional[_Union[WhileThunkProto, _Mapping]] = ..., kernel_thunk: _Optional[_Union[KernelThunkProto, _Mapping]] = ..., copy_thunk: _Optional[_Union[CopyThunkProto, _Mapping]] = ..., fft_thunk: _Optional[_Union[FftThunkProto, _Mapping]] = ..., infeed_thunk: _Optional[_Union[InfeedThunkProto, _Mapping]] = ..., outfeed_thunk: _Optional[_Union[OutfeedThunkProto, _Mapping]] = ..., custom_call_thunk: _Optional[_Union[CustomCallThunkProto, _Mapping]] = ..., convolution_thunk: _Optional[_Union[ConvolutionThunkProto, _Mapping]] = ..., collective_thunk: _Optional[_Union[CollectiveThunkProto, _Mapping]] = ..., partition_id_thunk: _Optional[_Union[PartitionIdThunkProto, _Mapping]] = ..., replica_id_thunk: _Optional[_Union[ReplicaIdThunkProto, _Mapping]] = ..., ynn_fusion_thunk: _Optional[_Union[YnnFusionThunkProto, _Mapping]] = ..., rng_seed_thunk: _Optional[_Union[RngSeedThunkProto, _Mapping]] = ...) -> None: ...

class CallThunkProto(_message.Message):
    __slots__ = ("called_sequence",)
    CALLED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    called_sequence: ThunkSequenceProto
    def __init__(self, called_sequence: _Optional[_Union[ThunkSequenceProto, _Mapping]] = ...) -> None: ...

class ConditionalThunkProto(_message.Message):
    __slots__ = ("branch_sequences", "branch_index_buffer")
    BRANCH_SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    BRANCH_INDEX_BUFFER_FIELD_NUMBER: _ClassVar[int]
    branch_sequences: _containers.RepeatedCompositeFieldContainer[ThunkSequenceProto]
    branch_index_buffer: SliceProto
    def __init__(self, branch_sequences: _Optional[_Iterable[_Union[ThunkSequenceProto, _Mapping]]] = ..., branch_index_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class WhileThunkProto(_message.Message):
    __slots__ = ("cond_sequence", "body_sequence", "trip_count", "cond_buffer")
    class TripCount(_message.Message):
        __slots__ = ("value", "contains_value")
        VALUE_FIELD_NUMBER: _ClassVar[int]
        CONTAINS_VALUE_FIELD_NUMBER: _ClassVar[int]
        value: int
        contains_value: bool
        def __init__(self, value: _Optional[int] = ..., contains_value: bool = ...) -> None: ...
    COND_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BODY_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TRIP_COUNT_FIELD_NUMBER: _ClassVar[int]
    COND_BUFFER_FIELD_NUMBER: _ClassVar[int]
    cond_sequence: ThunkSequenceProto
    body_sequence: ThunkSequenceProto
    trip_count: WhileThunkProto.TripCount
    cond_buffer: SliceProto
    def __init__(self, cond_sequence: _Optional[_Union[ThunkSequenceProto, _Mapping]] = ..., body_sequence: _Optional[_Union[ThunkSequenceProto, _Mapping]] = ..., trip_count: _Optional[_Union[WhileThunkProto.TripCount, _Mapping]] = ..., cond_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class KernelThunkProto(_message.Message):
    __slots__ = ("kernel_name", "num_workgroups", "invariant_arguments", "min_alignment", "arguments_buffers", "results_buffers")
    KERNEL_NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKGROUPS_FIELD_NUMBER: _ClassVar[int]
    INVARIANT_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    MIN_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_BUFFERS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_BUFFERS_FIELD_NUMBER: _ClassVar[int]
    kernel_name: bytes
    num_workgroups: bytes
    invariant_arguments: _containers.RepeatedScalarFieldContainer[int]
    min_alignment: bytes
    arguments_buffers: _containers.RepeatedCompositeFieldContainer[ShapedSliceProto]
    results_buffers: _containers.RepeatedCompositeFieldContainer[ShapedSliceProto]
    def __init__(self, kernel_name: _Optional[bytes] = ..., num_workgroups: _Optional[bytes] = ..., invariant_arguments: _Optional[_Iterable[int]] = ..., min_alignment: _Optional[bytes] = ..., arguments_buffers: _Optional[_Iterable[_Union[ShapedSliceProto, _Mapping]]] = ..., results_buffers: _Optional[_Iterable[_Union[ShapedSliceProto, _Mapping]]] = ...) -> None: ...

class CopyThunkProto(_message.Message):
    __slots__ = ("src_buffer_shape", "dst_buffer_shape")
    SRC_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    DST_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    src_buffer_shape: ShapeSliceProto
    dst_buffer_shape: ShapeSliceProto
    def __init__(self, src_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., dst_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ...) -> None: ...

class DotThunkProto(_message.Message):
    __slots__ = ("dot_dimensions", "lhs_buffer_shape", "rhs_buffer_shape", "out_buffer_shape")
    DOT_DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    LHS_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    RHS_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    OUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    dot_dimensions: bytes
    lhs_buffer_shape: ShapeSliceProto
    rhs_buffer_shape: ShapeSliceProto
    out_buffer_shape: ShapeSliceProto
    def __init__(self, dot_dimensions: _Optional[bytes] = ..., lhs_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., rhs_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., out_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ...) -> None: ...

class ConvolutionThunkProto(_message.Message):
    __slots__ = ("dimension_numbers", "window", "feature_group_count", "input_buffer_shape", "kernel_buffer_shape", "output_buffer_shape", "options")
    DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    FEATURE_GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    INPUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    KERNEL_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    dimension_numbers: bytes
    window: bytes
    feature_group_count: int
    input_buffer_shape: ShapeSliceProto
    kernel_buffer_shape: ShapeSliceProto
    output_buffer_shape: ShapeSliceProto
    options: bytes
    def __init__(self, dimension_numbers: _Optional[bytes] = ..., window: _Optional[bytes] = ..., feature_group_count: _Optional[int] = ..., input_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., kernel_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., output_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., options: _Optional[bytes] = ...) -> None: ...

class FftThunkProto(_message.Message):
    __slots__ = ("is_multi_thread_eigen", "fft_type", "fft_length", "input_buffer_shape", "output_buffer_shape")
    IS_MULTI_THREAD_EIGEN_FIELD_NUMBER: _ClassVar[int]
    FFT_TYPE_FIELD_NUMBER: _ClassVar[int]
    FFT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    INPUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
    is_multi_thread_eigen: bool
    fft_type: int
    fft_length: _containers.RepeatedScalarFieldContainer[int]
    input_buffer_shape: ShapeSliceProto
    output_buffer_shape: ShapeSliceProto
    def __init__(self, is_multi_thread_eigen: bool = ..., fft_type: _Optional[int] = ..., fft_length: _Optional[_Iterable[int]] = ..., input_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., output_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ...) -> None: ...

class SortThunkProto(_message.Message):
    __slots__ = ("dimension", "is_stable", "direction", "comparator_name", "inputs_shapes")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    IS_STABLE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    COMPARATOR_NAME_FIELD_NUMBER: _ClassVar[int]
    INPUTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    dimension: int
    is_stable: bool
    direction: bytes
    comparator_name: bytes
    inputs_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
    def __init__(self, dimension: _Optional[int] = ..., is_stable: bool = ..., direction: _Optional[bytes] = ..., comparator_name: _Optional[bytes] = ..., inputs_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ...) -> None: ...

class TopKThunkProto(_message.Message):
    __slots__ = ("batch_size", "input_size", "k", "values_buffer", "output_buffer", "indices_buffer")
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    INPUT_SIZE_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    VALUES_BUFFER_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BUFFER_FIELD_NUMBER: _ClassVar[int]
    INDICES_BUFFER_FIELD_NUMBER: _ClassVar[int]
    batch_size: int
    input_size: int
    k: int
    values_buffer: SliceProto
    output_buffer: SliceProto
    indices_buffer: SliceProto
    def __init__(self, batch_size: _Optional[int] = ..., input_size: _Optional[int] = ..., k: _Optional[int] = ..., values_buffer: _Optional[_Union[SliceProto, _Mapping]] = ..., output_buffer: _Optional[_Union[SliceProto, _Mapping]] = ..., indices_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class RngGetAndUpdateStateThunkProto(_message.Message):
    __slots__ = ("delta", "state_buffer")
    DELTA_FIELD_NUMBER: _ClassVar[int]
    STATE_BUFFER_FIELD_NUMBER: _ClassVar[int]
    delta: int
    state_buffer: SliceProto
    def __init__(self, delta: _Optional[int] = ..., state_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class RngSeedThunkProto(_message.Message):
    __slots__ = ("dest_buffer",)
    DEST_BUFFER_FIELD_NUMBER: _ClassVar[int]
    dest_buffer: SliceProto
    def __init__(self, dest_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class PartitionIdThunkProto(_message.Message):
    __slots__ = ("logical_id_buffer",)
    LOGICAL_ID_BUFFER_FIELD_NUMBER: _ClassVar[int]
    logical_id_buffer: SliceProto
    def __init__(self, logical_id_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class ReplicaIdThunkProto(_message.Message):
    __slots__ = ("logical_id_buffer",)
    LOGICAL_ID_BUFFER_FIELD_NUMBER: _ClassVar[int]
    logical_id_buffer: SliceProto
    def __init__(self, logical_id_buffer: _Optional[_Union[SliceProto, _Mapping]] = ...) -> None: ...

class InfeedThunkProto(_message.Message):
    __slots__ = ("infeed_resources", "infeed_buffers_shapes")
    INFEED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    INFEED_BUFFERS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    infeed_resources: bytes
    infeed_buffers_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
    def __init__(self, infeed_resources: _Optional[bytes] = ..., infeed_buffers_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ...) -> None: ...

class OutfeedThunkProto(_message.Message):
    __slots__ = ("outfeed_resources", "outfeed_buffers_shapes")
    OUTFEED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    OUTFEED_BUFFERS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    outfeed_resources: bytes
    outfeed_buffers_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
    def __init__(self, outfeed_resources: _Optional[bytes] = ..., outfeed_buffers_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ...) -> None: ...

class CustomCallThunkProto(_message.Message):
    __slots__ = ("api_version", "target_name", "backend_config", "op_buffers")
    class OpBuffers(_message.Message):
        __slots__ = ("arguments_shapes", "results_shapes", "is_tuple_result")
        ARGUMENTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
        RESULTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
        IS_TUPLE_RESULT_FIELD_NUMBER: _ClassVar[int]
        arguments_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
        results_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
        is_tuple_result: bool
        def __init__(self, arguments_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ..., results_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ..., is_tuple_result: bool = ...) -> None: ...
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    TARGET_NAME_FIELD_NUMBER: _ClassVar[int]
    BACKEND_CONFIG_FIELD_NUMBER: _ClassVar[int]
    OP_BUFFERS_FIELD_NUMBER: _ClassVar[int]
    api_version: int
    target_name: bytes
    backend_config: bytes
    op_buffers: CustomCallThunkProto.OpBuffers
    def __init__(self, api_version: _Optional[int] = ..., target_name: _Optional[bytes] = ..., backend_config: _Optional[bytes] = ..., op_buffers: _Optional[_Union[CustomCallThunkProto.OpBuffers, _Mapping]] = ...) -> None: ...

class CollectiveThunkProto(_message.Message):
    __slots__ = ("op_params", "op_buffers", "op_resources", "all_gather_thunk", "all_reduce_thunk", "all_to_all_thunk", "reduce_scatter_thunk", "collective_permute_thunk")
    class OpBuffers(_message.Message):
        __slots__ = ("source_shapes_buffer_slices", "destination_shapes_buffer_slices")
        SOURCE_SHAPES_BUFFER_SLICES_FIELD_NUMBER: _ClassVar[int]
        DESTINATION_SHAPES_BUFFER_SLICES_FIELD_NUMBER: _ClassVar[int]
        source_shapes_buffer_slices: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
        destination_shapes_buffer_slices: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
        def __init__(self, source_shapes_buffer_slices: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ..., destination_shapes_buffer_slices: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ...) -> None: ...
    OP_PARAMS_FIELD_NUMBER: _ClassVar[int]
    OP_BUFFERS_FIELD_NUMBER: _ClassVar[int]
    OP_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    ALL_GATHER_THUNK_FIELD_NUMBER: _ClassVar[int]
    ALL_REDUCE_THUNK_FIELD_NUMBER: _ClassVar[int]
    ALL_TO_ALL_THUNK_FIELD_NUMBER: _ClassVar[int]
    REDUCE_SCATTER_THUNK_FIELD_NUMBER: _ClassVar[int]
    COLLECTIVE_PERMUTE_THUNK_FIELD_NUMBER: _ClassVar[int]
    op_params: bytes
    op_buffers: CollectiveThunkProto.OpBuffers
    op_resources: bytes
    all_gather_thunk: bytes
    all_reduce_thunk: bytes
    all_to_all_thunk: bytes
    reduce_scatter_thunk: bytes
    collective_permute_thunk: bytes
    def __init__(self, op_params: _Optional[bytes] = ..., op_buffers: _Optional[_Union[CollectiveThunkProto.OpBuffers, _Mapping]] = ..., op_resources: _Optional[bytes] = ..., all_gather_thunk: _Optional[bytes] = ..., all_reduce_thunk: _Optional[bytes] = ..., all_to_all_thunk: _Optional[bytes] = ..., reduce_scatter_thunk: _Optional[bytes] = ..., collective_permute_thunk: _Optional[bytes] = ...) -> None: ...

class YnnFusionThunkProto(_message.Message):
    __slots__ = ("options", "instruction_id", "arguments_shapes", "results_shapes")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_ID_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
    options: bytes
    instruction_id: int
    arguments_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
    results_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
    def __init__(self, options: _Optional[bytes] = ..., instruction_id: _Optional[int] = ..., arguments_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ..., results_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ...) -> None: ...

class XnnFusionThunkProto(_message.Message):
    __slots__ = ("options", "xnn_dot_thunk", "xnn_convolution_thunk", "xnn_fusion_thunk")
    class Dot(_message.Message):
        __slots__ = ("dot_dimensions", "lhs_buffer_shape", "rhs_buffer_shape", "out_buffer_shape", "capture_rhs")
        DOT_DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
        LHS_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
        RHS_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
        OUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
        CAPTURE_RHS_FIELD_NUMBER: _ClassVar[int]
        dot_dimensions: bytes
        lhs_buffer_shape: ShapeSliceProto
        rhs_buffer_shape: ShapeSliceProto
        out_buffer_shape: ShapeSliceProto
        capture_rhs: bool
        def __init__(self, dot_dimensions: _Optional[bytes] = ..., lhs_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., rhs_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., out_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., capture_rhs: bool = ...) -> None: ...
    class Convolution(_message.Message):
        __slots__ = ("dimension_numbers", "window", "feature_group_count", "input_buffer_shape", "kernel_buffer_shape", "output_buffer_shape")
        DIMENSION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
        WINDOW_FIELD_NUMBER: _ClassVar[int]
        FEATURE_GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
        INPUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
        KERNEL_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_BUFFER_SHAPE_FIELD_NUMBER: _ClassVar[int]
        dimension_numbers: bytes
        window: bytes
        feature_group_count: int
        input_buffer_shape: ShapeSliceProto
        kernel_buffer_shape: ShapeSliceProto
        output_buffer_shape: ShapeSliceProto
        def __init__(self, dimension_numbers: _Optional[bytes] = ..., window: _Optional[bytes] = ..., feature_group_count: _Optional[int] = ..., input_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., kernel_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ..., output_buffer_shape: _Optional[_Union[ShapeSliceProto, _Mapping]] = ...) -> None: ...
    class Fusion(_message.Message):
        __slots__ = ("arguments_shapes", "results_shapes")
        ARGUMENTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
        RESULTS_SHAPES_FIELD_NUMBER: _ClassVar[int]
        arguments_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
        results_shapes: _containers.RepeatedCompositeFieldContainer[ShapeSliceProto]
        def __init__(self, arguments_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ..., results_shapes: _Optional[_Iterable[_Union[ShapeSliceProto, _Mapping]]] = ...) -> None: ...
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    XNN_DOT_THUNK_FIELD_NUMBER: _ClassVar[int]
    XNN_CONVOLUTION_THUNK_FIELD_NUMBER: _ClassVar[int]
    XNN_FUSION_THUNK_FIELD_NUMBER: _ClassVar[int]
    options: bytes
    xnn_dot_thunk: XnnFusionThunkProto.Dot
    xnn_convolution_thunk: XnnFusionThunkProto.Convolution
    xnn_fusion_thunk: XnnFusionThunkProto.Fusion
    def __init__(self, options: _Optional[bytes] = ..., xnn_dot_thunk: _Optional[_Union[XnnFusionThunkProto.Dot, _Mapping]] = ..., xnn_convolution_thunk: _Optional[_Union[XnnFusionThunkProto.Convolution, _Mapping]] = ..., xnn_fusion_thunk: _Optional[_Union[XnnFusionThunkProto.Fusion, _Mapping]] = ...) -> None: ...
