// The CPU backend: kernels on a thread pool, memory from mmap, a stream that runs at once.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/draw_loops.h"
#include "backend/cpu/simd/simd.h"
#include "base/error.h"

namespace lockstep {
namespace cpu {
namespace {

// Anonymous pages: zero, untouched until used, and returned to the system when freed.
class CpuBuffer : public Buffer {
 public:
  explicit CpuBuffer(int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    data_ =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED)
      throw DeviceError("cannot map {} bytes of memory: {}", bytes, std::strerror(errno));
    madvise(data_, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  }
  ~CpuBuffer() override {
    if (bytes_ != 0) munmap(data_, static_cast<size_t>(bytes_));
  }
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;
  void* data() override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

class CompleteEvent : public Event {
 public:
  void wait() override {}
};

class CpuStream : public Stream {
 public:
  void enqueue(Kernel& kernel, const KernelArgs& args) override { kernel.run(args); }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));  // empty tensors have no address
  }
  void zero(void* at, int64_t bytes) override {
    if (bytes > 0) std::memset(at, 0, static_cast<size_t>(bytes));
  }
  EventPtr record() override { return complete_; }
  void wait(const EventPtr&) override {}
  void synchronize() override {}

 private:
  EventPtr complete_ = std::make_shared<CompleteEvent>();
};

// Elements [first, first + values.size()), by vectors where there are enough of them.
void draw_piece(const DrawLoops& loops, const RandomFill& fill, int64_t first, std::span<float> values) {
  int64_t done = 0;
  if (fill.kind == RandomFill::Kind::kNormal && first % 4 == 0)
    done = loops.fill_normal({fill.seed, fill.stream, fill.a, fill.b}, static_cast<uint64_t>(first),
                             values.data(), static_cast<int64_t>(values.size()));
  const int64_t last = first + done;
  for (int64_t i = std::max(first, fill.zeros_begin); i < std::min(last, fill.zeros_end); ++i)
    values[static_cast<size_t>(i - first)] = 0;
  fill.fill(last, values.subspan(static_cast<size_t>(done)));
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(int threads) : isa_(detect_isa()), pool_(threads), context_{pool_, simd_for(isa_)} {
    limit_onednn(isa_);
  }

  std::string name() const override { return "cpu"; }
  std::string architecture() const override { return fmt::format("x86-64-{}", name_of(isa_)); }

  MemoryKind memory() const override { return MemoryKind::kHost; }
  int host_threads() const override { return pool_.threads(); }

  KernelChoice choose(const Graph& graph, const Node& node) override {
    KernelChoice choice;
    for (const KernelDef& def : all_kernels()) {
      const bool serves = def.op == node.op->name || (def.op == kAnyPointwise && node.op->traits.pointwise);
      if (!serves) continue;
      std::string reason = def.refuse(graph, node);
      if (!reason.empty()) {
        choice.refusals.push_back({std::string(def.name), std::move(reason)});
        continue;
      }
      choice.kernel = def.make(graph, node, context_);
      choice.name = def.name;
      break;
    }
    return choice;
  }

  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind) override {
    return std::make_unique<CpuBuffer>(bytes);
  }
  Stream& stream(StreamKind) override { return stream_; }
  bool draw(const RandomFill& fill, DType dtype, int64_t first, void* to, int64_t count) override {
    if (!is_floating(dtype)) return false;
    const DrawLoops& loops = isa_ == Isa::kAvx512 ? avx512::draw_loops : avx2::draw_loops;
    constexpr int64_t kPiece = 1 << 14;
    pool_.run((count + kPiece - 1) / kPiece, [&](int64_t task) {
      const int64_t begin = task * kPiece, n = std::min(kPiece, count - begin);
      if (dtype == DType::kF32)
        return draw_piece(loops, fill, first + begin,
                          {static_cast<float*>(to) + begin, static_cast<size_t>(n)});
      // Drawn as f32 and rounded to the type it is stored in.
      std::vector<float> values(static_cast<size_t>(n));
      draw_piece(loops, fill, first + begin, values);
      for (int64_t i = 0; i < n; ++i)
        write_element(dtype, to, begin + i, static_cast<double>(values[static_cast<size_t>(i)]));
    });
    return true;
  }

 private:
  Isa isa_;
  ThreadPool pool_;
  CpuContext context_;
  CpuStream stream_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<cpu::CpuBackend>(threads); }

}  // namespace lockstep
