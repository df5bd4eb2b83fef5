"""Whose work the kernels of a GPU are: two programs as XLA wrote them for an H100, and their runs.

Lines of the text are shorter here; names, kinds and order of instructions, and what the profiler
told of the kernels (jaxlib 0.11.2, CUDA 13), are as recorded.
"""

from __future__ import annotations

import pytest

from perspex.hlo.instructions import Instructions
from perspex.runtime.kernels import Kernel, owners

GEMM = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x128x32_warpgroupsize1x1x1"

# `y = x @ x; z = sort(y); (z @ x).sum()`
STRAIGHT = """
%sorted (p: f32[1024,1024]) -> (f32[1024,1024], s32[1024,1024]) {
  %p = f32[1024,1024]{1,0} parameter(0)
  ROOT %sort.3.0.1 = (f32[1024,1024]{1,0}, s32[1024,1024]{1,0}) sort(%p, %p), to_apply=%region
}

ENTRY %main.3 (Arg_0.1: f32[1024,1024]) -> f32[] {
  %Arg_0.1 = f32[1024,1024]{1,0} parameter(0)
  %custom-call.1 = (f32[1024,1024]{1,0}, s8[9]{0}) custom-call(%Arg_0.1, %Arg_0.1)
  %get-tuple-element.2 = f32[1024,1024]{1,0} get-tuple-element(%custom-call.1), index=0
  %fusion.2 = (f32[1024,1024]{1,0}, s32[9]{0}) fusion(%get-tuple-element.2), calls=%sorted
  %get-tuple-element.1 = f32[1024,1024]{1,0} get-tuple-element(%fusion.2), index=0
  %custom-call.0 = (f32[1024,1024]{1,0}, s8[9]{0}) custom-call(%get-tuple-element.1, %Arg_0.1)
  %get-tuple-element.3 = f32[1024,1024]{1,0} get-tuple-element(%custom-call.0), index=0
  %input_reduce_fusion.1 = f32[1024]{0} fusion(%get-tuple-element.3), kind=kInput
  ROOT %input_reduce_fusion = f32[] fusion(%input_reduce_fusion.1), kind=kCustom
}
"""
RUN = [
    (GEMM, "", "custom-call.1"),
    ("MemcpyD2D", "fusion.2", "fusion.2"),
    ("sort_3_0_1", "fusion.2", "fusion.2"),
    (GEMM, "", "custom-call.0"),
    ("input_reduce_fusion_1", "input_reduce_fusion.1", "input_reduce_fusion.1"),
    ("input_reduce_fusion", "input_reduce_fusion", "input_reduce_fusion"),
]

# `scan(lambda c, _: (sin(c @ x) * 0.1, c.sum()), x, length=10)`
LOOP = """
%turn (t: (s32[], f32[1024,1024])) -> (s32[], f32[1024,1024]) {
  %get-tuple-element.10 = f32[1024,1024]{1,0} get-tuple-element(%t), index=1
  %input_reduce_fusion.1 = f32[1024]{0} fusion(%get-tuple-element.10), kind=kInput
  %input_reduce_fusion = f32[] fusion(%input_reduce_fusion.1), kind=kCustom
  %fusion-start = (f32[10]{0}, u32[]) fusion-start(%input_reduce_fusion), kind=kLoop
  %custom-call.1 = (f32[1024,1024]{1,0}, s8[9]{0}) custom-call(%get-tuple-element.10, %t)
  %get-tuple-element = f32[1024,1024]{1,0} get-tuple-element(%custom-call.1), index=0
  %gemm_fusion_dot_general_9.1 = f32[1024,1024]{1,0} fusion(%get-tuple-element), kind=kLoop
  %fusion-done = f32[10]{0} fusion-done(%fusion-start)
  %loop_add_fusion = s32[] fusion(%t), kind=kLoop
  ROOT %tuple.4 = (s32[], f32[1024,1024]{1,0}) tuple(%loop_add_fusion, %fusion-done)
}

%region_2.3 (u: (s32[], f32[1024,1024])) -> pred[] {
  ROOT %loop_compare_fusion = pred[] fusion(%u), kind=kLoop
}

ENTRY %main.4 (Arg_0.1: f32[1024,1024]) -> (f32[1024,1024], f32[10]) {
  %constant_11_0 = s32[] constant(0)
  %copy.11 = s32[] copy(%constant_11_0)
  %loop_broadcast_fusion = f32[10]{0} fusion(), kind=kLoop
  %copy.2 = f32[1024,1024]{1,0} copy(%Arg_0.1)
  %tuple = (s32[], f32[1024,1024]{1,0}) tuple(%copy.11, %copy.2)
  ROOT %scan_5.6 = (s32[], f32[1024,1024]{1,0}) while(%tuple), condition=%region_2.3, body=%turn
}
"""
TURN = [
    ("input_reduce_fusion_1", "input_reduce_fusion.1", "input_reduce_fusion.1"),
    ("input_reduce_fusion", "input_reduce_fusion", "input_reduce_fusion"),
    # Of an instruction that the text does not have.
    ("MemcpyD2D", "loop_dynamic_update_slice_fusion.1", ""),
    (GEMM, "scan_5.6", "custom-call.1"),
    ("gemm_fusion_dot_general_9_1", "gemm_fusion_dot_general_9.1", "gemm_fusion_dot_general_9.1"),
    ("loop_add_fusion", "scan_5.6", "loop_add_fusion"),
]
TURNS = [
    ("MemcpyD2D", "copy.11", "copy.11"),
    ("loop_broadcast_fusion", "loop_broadcast_fusion", "loop_broadcast_fusion"),
    ("MemcpyD2D", "copy.2", "copy.2"),
    *TURN * 10,
]


@pytest.mark.parametrize(("text", "seen"), [(STRAIGHT, RUN), (LOOP, TURNS)], ids=["once", "loop"])
def test_as_recorded(text: str, seen: list[tuple[str, str, str]]) -> None:
    kernels = [Kernel(name, said) for name, said, _ in seen]
    assert owners(kernels, Instructions(text)) == [want for _, _, want in seen]


CALLS = """
%body (t: f32[4]) -> f32[4] {
  %custom-call.5 = f32[4]{0} custom-call(%t)
  %custom-call.6 = f32[4]{0} custom-call(%custom-call.5)
  ROOT %inner_fusion = f32[4]{0} fusion(%custom-call.6), kind=kLoop
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %custom-call.1 = f32[4]{0} custom-call(%x)
  %first_fusion = f32[4]{0} fusion(%custom-call.1), kind=kLoop
  %custom-call.2 = f32[4]{0} custom-call(%first_fusion)
  %custom-call.3 = f32[4]{0} custom-call(%custom-call.2)
  %loop.1 = f32[4]{0} while(%custom-call.3), condition=%c, body=%body
  %custom-call.4 = f32[4]{0} custom-call(%loop.1)
  ROOT %last_fusion = f32[4]{0} fusion(%custom-call.4), kind=kLoop
}
"""
FIRST, INNER, LAST = [Kernel(f"{n}_fusion", f"{n}_fusion") for n in ("first", "inner", "last")]
LIBRARY, COPY = Kernel("gemm", ""), Kernel("MemcpyH2D", "")


def of_calls(*kernels: Kernel) -> list[str]:
    """What belongs to kernels of a library, in short."""
    found = owners(kernels, Instructions(CALLS))
    return [
        name.removeprefix("custom-call.")
        for name, kernel in zip(found, kernels, strict=True)
        if kernel is LIBRARY
    ]


def test_several_calls_in_a_row() -> None:
    """Each call has as many kernels as the next, where nothing tells them apart."""
    assert of_calls(LIBRARY, FIRST) == ["1"]
    assert of_calls(LIBRARY, LIBRARY, FIRST) == ["1", "1"]


def test_into_a_loop_and_out_of_it() -> None:
    assert of_calls(FIRST, *[LIBRARY] * 4, INNER) == ["2", "3", "5", "6"]
    assert of_calls(INNER, *[LIBRARY] * 2, INNER) == ["5", "6"]
    assert of_calls(INNER, LIBRARY, LAST) == ["4"]
    assert of_calls(FIRST, *[LIBRARY] * 8, INNER) == ["2", "2", "3", "3", "5", "5", "6", "6"]


def test_what_nobody_knows() -> None:
    text = "ENTRY %main (x: f32[4]) -> f32[4] {\n  ROOT %a = f32[4]{0} fusion(%x), kind=kLoop\n}\n"
    assert owners([LIBRARY, COPY], Instructions(text)) == ["", ""]
    assert owners([COPY], Instructions(CALLS)) == [""]
    assert owners([], Instructions(CALLS)) == []


def test_a_program_of_calls_only() -> None:
    text = "ENTRY %main (x: f32[4]) -> f32[4] {\n  ROOT %a = f32[4]{0} custom-call(%x)\n}\n"
    assert owners([LIBRARY, COPY, LIBRARY], Instructions(text)) == ["a", "", "a"]
