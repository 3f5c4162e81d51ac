#include "run/weight_shards.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/convert.h"
#include "base/cores.h"
#include "base/thread_pool.h"
#include "safetensors/writer.h"

namespace lockstep {
namespace {

constexpr int64_t kPart = int64_t{1} << 22;  // elements of a file that are made before they are written
constexpr int64_t kTask = int64_t{1} << 16;

// A file on its way: the part of a tensor that is made next.
class OpenShard {
 public:
  OpenShard(const std::string& folder, const WeightShard& shard)
      : writer_(folder, shard.name, shard.tensors, {{"format", "pt"}}) {}

  bool is_complete() const { return next_ == writer_.tensors().size(); }
  int64_t first() const { return first_; }
  int64_t count() const { return std::min(kPart, tensor().shape.numel() - first_); }

  void begin_part(const std::function<FillPart(const TensorSpec& tensor)>& open) {
    if (first_ == 0) fill_ = open(tensor());
    part_.resize(static_cast<size_t>(count() * size_of(tensor().dtype)));
  }
  void fill(int64_t begin, int64_t count) {
    const int64_t size = size_of(tensor().dtype);
    fill_(first_ + begin, count,
          std::span(part_).subspan(static_cast<size_t>(begin * size), static_cast<size_t>(count * size)));
  }
  void end_part() {
    writer_.append(part_);
    first_ += count();
    if (first_ < tensor().shape.numel()) return;
    first_ = 0;
    ++next_;
    pass_empty();
  }
  void finish() { writer_.finish(); }

  void pass_empty() {
    while (!is_complete() && tensor().shape.numel() == 0) ++next_;
  }

 private:
  const TensorSpec& tensor() const { return writer_.tensors()[next_].tensor; }

  SafetensorsWriter writer_;
  size_t next_ = 0;    // of its tensors
  int64_t first_ = 0;  // of that one's elements
  FillPart fill_;
  std::vector<std::byte> part_;
};

}  // namespace

FillPart as_floats(DType dtype, FillFloats fill) {
  return [dtype, fill = std::move(fill)](int64_t first, int64_t count, std::span<std::byte> into) {
    std::vector<float> values(static_cast<size_t>(count));
    fill(first, values);
    convert_elements(DType::kF32, values.data(), dtype, into.data(), count);
  };
}

void write_shards(const std::string& folder, const std::vector<WeightShard>& shards,
                  const std::function<FillPart(const TensorSpec& tensor)>& open) {
  std::deque<OpenShard> files;
  for (const WeightShard& shard : shards) files.emplace_back(folder, shard).pass_empty();
  ThreadPool pool(available_cores().usable);
  struct Task {
    OpenShard* file;
    int64_t begin, count;
  };
  for (;;) {
    std::vector<OpenShard*> writing;
    std::vector<Task> tasks;
    for (OpenShard& file : files) {
      // Many files would hold many parts: a few are enough to keep a disk busy.
      if (file.is_complete() || writing.size() == 8) continue;
      file.begin_part(open);
      writing.push_back(&file);
      for (int64_t begin = 0; begin < file.count(); begin += kTask)
        tasks.push_back({&file, begin, std::min(kTask, file.count() - begin)});
    }
    if (writing.empty()) break;
    pool.run(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
      const Task& task = tasks[static_cast<size_t>(i)];
      task.file->fill(task.begin, task.count);
    });
    pool.run(static_cast<int64_t>(writing.size()),
             [&](int64_t i) { writing[static_cast<size_t>(i)]->end_part(); });
  }
  pool.run(static_cast<int64_t>(files.size()), [&](int64_t i) { files[static_cast<size_t>(i)].finish(); });
}

}  // namespace lockstep
