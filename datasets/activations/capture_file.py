"""Writes captured tensors as a safetensors file; capture.py, capture_vllm.py and train_asynct.py use it.
SPDX-License-Identifier: Apache-2.0
"""
import json
import struct

import torch

DTYPE_WORDS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}


class CaptureError(Exception):
    """The model cannot be captured; the message says what was found and what is wanted."""


def raw_bytes(tensor):
    """(safetensors word, little-endian bytes) of a tensor."""
    if tensor.dtype == torch.int32:
        return "I32", tensor.numpy().astype("<i4").tobytes()
    if tensor.dtype not in DTYPE_WORDS:
        raise CaptureError("tensors of %s are not recorded; wanted one of %s" % (tensor.dtype, list(DTYPE_WORDS)))
    width = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    codes = tensor.contiguous().cpu().view(width).numpy()
    return DTYPE_WORDS[tensor.dtype], codes.astype(codes.dtype.newbyteorder("<")).tobytes()


def write_safetensors(path, tensors, metadata):
    """Writes the file with everything in name order, so that equal tensors give equal bytes.

    (The safetensors library orders the metadata anew in every process.)"""
    header, pieces, offset = {"__metadata__": dict(sorted(metadata.items()))}, [], 0
    for name in sorted(tensors):
        word, data = raw_bytes(tensors[name])
        header[name] = {"dtype": word, "shape": list(tensors[name].shape), "data_offsets": [offset, offset + len(data)]}
        pieces.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        out.writelines(pieces)
