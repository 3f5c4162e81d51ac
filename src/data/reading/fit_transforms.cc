#include "data/reading/fit_transforms.h"

#include <algorithm>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/transform/column_values.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

// Not the blocks of reading, which depend on how long records are: the same records give the same constants
// in every format.
constexpr int64_t kRecords = 512;

using Fits = std::vector<std::unique_ptr<TransformFit>>;  // null: not fitted in this pass

class Pass {
 public:
  Pass(const ShardSet& shards, const std::vector<std::shared_ptr<Transform>>& transforms, FitPass plan,
       const FitOptions& options)
      : shards_(shards), transforms_(transforms), plan_(std::move(plan)), options_(options) {}

  void run() {
    Fits all = begin();
    const int64_t blocks = (options_.records + kRecords - 1) / kRecords;
    // A stretch of blocks at a time, so that few fits wait to be merged.
    const int64_t stretch = 16 * int64_t{options_.threads};
    ThreadPool pool(options_.threads);
    for (int64_t first = 0; first < blocks; first += stretch) {
      const int64_t count = std::min(stretch, blocks - first);
      std::vector<Fits> fits(static_cast<size_t>(count));
      pool.run(count, [&](int64_t task) { fits[static_cast<size_t>(task)] = fit_block(first + task); });
      for (const Fits& block : fits)
        for (size_t i = 0; i < all.size(); ++i)
          if (all[i]) all[i]->merge(*block[i]);
    }
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i]) transforms_[i]->finish_fit(*all[i]);
  }

 private:
  Fits begin() const {
    Fits fits(transforms_.size());
    for (size_t i = 0; i < fits.size(); ++i)
      if (plan_.fit[i]) fits[i] = transforms_[i]->begin_fit();
    return fits;
  }

  Fits fit_block(int64_t number) {
    thread_local BlockScratch scratch;
    const int64_t first = number * kRecords;
    shards_.load(first, std::min(kRecords, options_.records - first), scratch, counters_);
    Fits fits = begin();
    try {
      require_finite(scratch.block);
      for (size_t i = 0; i < fits.size(); ++i) {
        if (fits[i]) fits[i]->add(scratch.block);
        if (plan_.apply[i]) transforms_[i]->apply({0, 0, first}, scratch.block);
      }
    } catch (const BadValue& bad) {
      throw UserError("{}: {}", shards_.describe(first + static_cast<int64_t>(bad.row())), bad.what());
    }
    return fits;
  }

  const ShardSet& shards_;
  const std::vector<std::shared_ptr<Transform>>& transforms_;
  FitPass plan_;
  const FitOptions& options_;
  StageCounters counters_;
};

}  // namespace

void fit_transforms(const ShardSet& shards, const std::vector<std::shared_ptr<Transform>>& transforms,
                    std::vector<bool>& ready, const FitOptions& options) {
  const Transforms chain(transforms.begin(), transforms.end());
  for (size_t i = 0; i < chain.size(); ++i)
    if (!chain[i]->begin_fit()) ready[i] = true;
  for (size_t passes = 0; passes < chain.size(); ++passes) {
    FitPass plan = next_pass(chain, ready);
    if (!plan.any()) return;
    const std::vector<bool> fitted = plan.fit;
    Pass(shards, transforms, std::move(plan), options).run();
    for (size_t i = 0; i < fitted.size(); ++i)
      if (fitted[i]) ready[i] = true;
  }
}

}  // namespace lockstep
