#include <algorithm>

#include "base/error.h"
#include "data/bytes/byte_source.h"

namespace lockstep {
namespace {

class JoinedBytes : public ByteSource {
 public:
  JoinedBytes(std::string name, std::vector<std::unique_ptr<ByteSource>> parts)
      : ByteSource(std::move(name)), parts_(std::move(parts)), begins_{0} {
    for (const auto& part : parts_) begins_.push_back(begins_.back() + part->size());
  }

  int64_t size() const override { return begins_.back(); }

  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= size(), "bytes from {} of {}",
                   offset, name());
    for_each_part(offset, static_cast<int64_t>(out.size()), [&](size_t part, int64_t from, int64_t bytes) {
      parts_[part]->read(from, out.first(static_cast<size_t>(bytes)));
      out = out.subspan(static_cast<size_t>(bytes));
    });
  }

  bool mappable() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->size() == 0 || part->mappable(); });
  }

  Mapped mapped(int64_t offset, int64_t bytes) const override {
    const size_t part = part_at(offset);
    if (offset + bytes > begins_[part + 1]) return {};
    return parts_[part]->mapped(offset - begins_[part], bytes);
  }

  void check_unchanged(int64_t offset) const override {
    for (size_t i = 0; i < parts_.size(); ++i)
      parts_[i]->check_unchanged(std::max<int64_t>(offset - begins_[i], 0));
  }

  std::string place(int64_t offset) const override {
    const size_t part = part_at(offset);
    return parts_[part]->place(offset - begins_[part]);
  }

  std::string stamp() const override {
    std::string stamp;
    for (const auto& part : parts_) stamp += (stamp.empty() ? "" : ", ") + part->stamp();
    return stamp;
  }

 private:
  // The part that holds this byte; the last, where it is the end.
  size_t part_at(int64_t offset) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, offset);
    return static_cast<size_t>(after - begins_.begin()) - 1;
  }

  template <typename Part>
  void for_each_part(int64_t offset, int64_t bytes, const Part& part) const {
    for (size_t i = part_at(offset); i < parts_.size() && bytes > 0; ++i) {
      const int64_t here = std::min(bytes, begins_[i + 1] - offset);
      part(i, offset - begins_[i], here);
      offset += here;
      bytes -= here;
    }
  }

  std::vector<std::unique_ptr<ByteSource>> parts_;
  std::vector<int64_t> begins_;  // of each part, and the end of the last
};

}  // namespace

std::unique_ptr<ByteSource> join_bytes(std::string name, std::vector<std::unique_ptr<ByteSource>> parts) {
  return std::make_unique<JoinedBytes>(std::move(name), std::move(parts));
}

}  // namespace lockstep
