#include "backend/cpu/filter_layout.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep::cpu {
namespace {

// Parts of at least this size, so that a part is worth a task.
constexpr int64_t kPartBytes = 1 << 17;
constexpr int64_t kMaxParts = 16;

// How many indices of the outermost axis the packed layout keeps together; 0 when that axis is not the
// outermost one in memory, and parts would not be contiguous.
int64_t outer_block(const dnnl::memory::desc& packed) {
  const auto& layout = packed.data.format_desc.blocking;
  int64_t block = 1;
  for (int i = 0; i < layout.inner_nblks; ++i)
    if (layout.inner_idxs[i] == 0) block *= layout.inner_blks[i];
  for (int axis = 1; axis < packed.data.ndims; ++axis)
    if (layout.strides[axis] > layout.strides[0]) return 0;
  return block;
}

int64_t part_count(const dnnl::memory::desc& packed) {
  const int64_t block = outer_block(packed);
  const int64_t extent = packed.data.dims[0];
  if (block == 0 || extent % block != 0) return 1;
  const int64_t wanted = std::min(kMaxParts, static_cast<int64_t>(packed.get_size()) / kPartBytes);
  for (int64_t parts = wanted; parts > 1; --parts)
    if (extent / block % parts == 0) return parts;
  return 1;
}

dnnl::memory::desc part_of(const dnnl::memory::desc& whole, int64_t parts) {
  dnnl::memory::dims dims = whole.dims();
  dims[0] /= parts;
  return parts == 1 ? whole : whole.submemory_desc(dims, dnnl::memory::dims(dims.size(), 0));
}

}  // namespace

FilterLayout::FilterLayout(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
                           Direction direction) {
  parts_ = part_count(packed);
  packed_bytes_ = static_cast<int64_t>(packed.get_size());
  const bool pack = direction == Direction::kPack;
  from_ = part_of(pack ? plain : packed, parts_);
  to_ = part_of(pack ? packed : plain, parts_);
  from_part_bytes_ = static_cast<int64_t>((pack ? plain : packed).get_size()) / parts_;
  to_part_bytes_ = static_cast<int64_t>((pack ? packed : plain).get_size()) / parts_;
  onednn::make_single_threaded([&] {
    const dnnl::reorder::primitive_desc desc(onednn::engine(), from_, onednn::engine(), to_,
                                             onednn::caller_scratch());
    LOCKSTEP_CHECK(desc.scratchpad_desc().get_size() == 0, "{} asks for scratch memory",
                   desc.impl_info_str());
    reorder_ = dnnl::reorder(desc);
  });
}

void FilterLayout::run_part(int64_t part, const void* from, void* to) const {
  onednn::run_single_threaded(
      reorder_,
      {{DNNL_ARG_FROM, onednn::view(from_, static_cast<const std::byte*>(from) + part * from_part_bytes_)},
       {DNNL_ARG_TO, onednn::view(to_, static_cast<std::byte*>(to) + part * to_part_bytes_)}});
}

}  // namespace lockstep::cpu
