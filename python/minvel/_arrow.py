"""Columns of anything that speaks Arrow's C stream interface, without pyarrow: a column in one piece is not copied."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Formats of numbers in Arrow's C data interface.
_NUMBERS = {b"c": "i1", b"C": "u1", b"s": "i2", b"S": "u2", b"i": "i4", b"I": "u4", b"l": "i8", b"L": "u8"}
_NUMBERS |= {b"e": "f2", b"f": "f4", b"g": "f8"}


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(_Schema))),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(_Array))),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(_Stream))),
    ("private_data", c_void_p),
]


class _Batch:
    """A batch of rows; its memory is given back when no array uses it any more."""

    def __init__(self) -> None:
        self.array = _Array()

    def __del__(self) -> None:
        if self.array.release:
            self.array.release(ctypes.byref(self.array))


def columns_of(source: Any) -> tuple[list[str], list[NDArray[Any]]]:
    """Names and columns; missing numbers are NaN, and columns that hold no numbers are of text."""
    capsule = source.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    stream = ctypes.cast(pointer(capsule, b"arrow_array_stream"), POINTER(_Stream))
    schema = _Schema()

    def checked(status: int) -> None:
        if status:
            why = stream.contents.get_last_error(stream)
            raise ValueError(f"the Arrow stream failed: {why.decode() if why else f'status {status}'}")

    checked(stream.contents.get_schema(stream, ctypes.byref(schema)))
    try:
        if schema.format != b"+s":
            raise ValueError("the Arrow stream holds no table; give a table of columns")
        fields = [schema.children[k].contents for k in range(schema.n_children)]
        names = [(field.name or b"").decode() for field in fields]
        formats: list[bytes] = [field.format for field in fields]
    finally:
        if schema.release:
            schema.release(ctypes.byref(schema))
    pieces: list[list[NDArray[Any]]] = [[] for _ in names]
    while True:
        batch = _Batch()
        checked(stream.contents.get_next(stream, ctypes.byref(batch.array)))
        if not batch.array.release:
            break
        for k, kind in enumerate(formats):
            pieces[k].append(_column(batch, batch.array.children[k].contents, kind))
    return names, [p[0] if len(p) == 1 else np.concatenate(p) if p else np.empty(0) for p in pieces]


def _column(batch: _Batch, array: _Array, kind: bytes) -> NDArray[Any]:
    # the rows of a struct may begin later than those of its columns
    start, rows = array.offset + batch.array.offset, batch.array.length
    if kind == b"b" and rows:
        values: NDArray[Any] = _bits(batch, array.buffers[1], start, rows).astype(np.float64)
    elif kind in _NUMBERS:
        values = _view(batch, array.buffers[1], np.dtype(_NUMBERS[kind]), start, rows)
    else:
        return np.full(rows, f"a column of Arrow's type {kind.decode()}")
    if array.null_count and array.buffers[0] and rows:
        values = values.astype(np.float64)
        values[~_bits(batch, array.buffers[0], start, rows)] = np.nan
    return values


def _view(batch: _Batch, address: int | None, dtype: np.dtype[Any], start: int, rows: int) -> NDArray[Any]:
    if not rows or address is None:
        return np.empty(0, dtype)
    memory = (ctypes.c_char * (rows * dtype.itemsize)).from_address(address + start * dtype.itemsize)
    memory.batch = batch  # type: ignore[attr-defined]  # kept as long as the array is
    view: NDArray[Any] = np.frombuffer(memoryview(memory), dtype)
    view.flags.writeable = False
    return view


def _bits(batch: _Batch, address: int, start: int, rows: int) -> NDArray[np.bool_]:
    first, last = start // 8, (start + rows + 7) // 8
    bytes_ = _view(batch, address, np.dtype(np.uint8), first, last - first)
    bits = np.unpackbits(bytes_, bitorder="little")[start - 8 * first :][:rows]
    return bits.astype(np.bool_)
