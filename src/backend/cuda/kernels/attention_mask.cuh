// Who sees whom, and which tiles of keys or queries hold anybody at all.
#pragma once
#include "backend/cuda/kernels/attention.h"

namespace lockstep::cuda {

struct AttentionMask {
  int queries, keys;
  bool causal;  // also set with a window
  int window;
  const uint8_t* visible;    // of this sequence, or null
  const int32_t* documents;  // of this sequence, or null

  __device__ AttentionMask(const AttentionShape& s, int64_t b)
      : queries(static_cast<int>(s.queries)),
        keys(static_cast<int>(s.keys)),
        causal(s.causal || s.window > 0),
        window(static_cast<int>(s.window)),
        visible(s.keys_visible == nullptr ? nullptr : s.keys_visible + b * s.keys),
        documents(s.documents == nullptr ? nullptr : s.documents + b * s.queries) {}

  __device__ __forceinline__ bool sees(int query, int key) const {
    if (query >= queries || key >= keys) return false;
    const int position = query + keys - queries;
    if (causal && key > position) return false;
    if (window > 0 && key <= position - window) return false;
    if (visible != nullptr && visible[key] == 0) return false;
    return documents == nullptr || documents[query] == documents[key];
  }
  // Keys [begin, end) that queries [first, last] may see by causality and window.
  __device__ __forceinline__ int key_begin(int first) const {
    const int begin = window > 0 ? first + keys - queries - window + 1 : 0;
    return begin < 0 ? 0 : begin;
  }
  __device__ __forceinline__ int key_end(int last) const {
    const int end = causal ? last + keys - queries + 1 : keys;
    return end < 0 ? 0 : end > keys ? keys : end;
  }
  // Queries [begin, end) that may see keys [first, last].
  __device__ __forceinline__ int query_begin(int first) const {
    const int begin = causal ? first - (keys - queries) : 0;
    return begin < 0 ? 0 : begin;
  }
  __device__ __forceinline__ int query_end(int last) const {
    const int end = window > 0 ? last - (keys - queries) + window : queries;
    return end < 0 ? 0 : end > queries ? queries : end;
  }
};

}  // namespace lockstep::cuda
