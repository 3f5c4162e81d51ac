#include "backend/cpu/tile_program.h"

#include <algorithm>

#include "backend/cpu/tile_run.h"

namespace lockstep::cpu {
namespace {

// Terms handed to a sum at once: whole rows of the usual widths, so that memory is walked in one direction.
constexpr int64_t kTermsAtOnce = 8192;

int64_t thread_scratch(const TileSteps& steps) { return steps.slots * steps.stride; }

class TileTerms : public TermSource {
 public:
  TileTerms(const TileSteps& steps, int summed, const CpuContext& context, const KernelArgs& args)
      : steps_(steps),
        step_(steps.steps[static_cast<size_t>(summed)]),
        run_(steps, context, args),
        scratch_(static_cast<float*>(args.workspace)),
        buffers_(scratch_ + context.pool.threads() * thread_scratch(steps)) {
    for (int thread = 0; thread < context.pool.threads(); ++thread) run_.begin(scratch_of(thread));
  }

  int64_t largest() const override { return kTermsAtOnce; }

  // A range may begin and end anywhere in a row: it is cut where a tile would change its form.
  const float* terms(int64_t begin, int64_t count, int thread) const override {
    float* buffer = buffers_ + thread * kTermsAtOnce;
    const float* first = nullptr;
    for (int64_t done = 0; done < count;) {
      const Tile tile = next_tile(begin + done, count - done);
      const int64_t end = begin + done + tile.elements();
      const TilePlace place{tile, scratch_of(thread), buffer + done, end < numel() ? end : -1};
      run_.evaluate(place);
      if (done == 0) first = run_.value_of(step_, place);
      done += place.tile.elements();
    }
    return first;
  }

 private:
  int64_t numel() const { return steps_.layout.rows() * steps_.layout.columns(); }
  float* scratch_of(int thread) const { return scratch_ + thread * thread_scratch(steps_); }

  Tile next_tile(int64_t begin, int64_t count) const {
    const TileLayout& layout = steps_.layout;
    const int64_t row = begin / layout.columns();
    const int64_t column = begin % layout.columns();
    const int64_t rows = std::min(count / layout.columns(), layout.rows_per_tile());
    if (column == 0 && rows > 1) return {row, rows, 0, layout.columns()};
    return {row, 1, column, std::min({count, layout.columns() - column, kTileElements})};
  }

  const TileSteps& steps_;
  const TileStep& step_;
  TileRun run_;
  float* scratch_;
  float* buffers_;
};

}  // namespace

int64_t TileProgram::workspace_bytes(const CpuContext& context) const {
  const int64_t floats = thread_scratch(steps_) + (summed_ >= 0 ? kTermsAtOnce : 0);
  return context.pool.threads() * floats * static_cast<int64_t>(sizeof(float));
}

void TileProgram::run(const CpuContext& context, const KernelArgs& args) const {
  const TileRun run(steps_, context, args);
  const TileLayout& layout = steps_.layout;
  const int64_t grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(layout.largest_tile(), 1));
  context.pool.run_indexed(ceil_div(layout.tiles(), grain), [&](int64_t task, int thread) {
    float* scratch = static_cast<float*>(args.workspace) + thread * thread_scratch(steps_);
    run.begin(scratch);
    const int64_t end = std::min((task + 1) * grain, layout.tiles());
    for (int64_t index = task * grain; index < end; ++index) {
      const int64_t next = index + 1 < end ? layout.offset(layout.tile(index + 1)) : -1;
      run.evaluate({layout.tile(index), scratch, nullptr, next});
    }
  });
}

std::unique_ptr<TermSource> TileProgram::terms(const CpuContext& context, const KernelArgs& args) const {
  return std::make_unique<TileTerms>(steps_, summed_, context, args);
}

}  // namespace lockstep::cpu
