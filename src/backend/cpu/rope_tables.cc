#include "backend/cpu/rope_tables.h"

#include <map>
#include <mutex>
#include <tuple>

#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

using Request = std::tuple<std::vector<float>, float, int64_t>;

std::shared_ptr<const RopeTables> make_tables(const CpuContext& context, const Request& request) {
  const auto& [frequencies, factor, positions] = request;
  const auto pairs = static_cast<int64_t>(frequencies.size());
  auto tables = std::make_shared<RopeTables>();
  tables->cos.resize(static_cast<size_t>(positions * pairs));
  tables->sin.resize(static_cast<size_t>(positions * pairs));
  const float* angles = frequencies.data();
  for_rows(context, positions, rows_per_task(pairs * 16), [&](int64_t begin, int64_t end) {
    context.simd.rope.fill_tables(angles, pairs, begin, end, tables->cos.data(), tables->sin.data());
  });
  if (factor != 1)
    for (std::vector<float>* table : {&tables->cos, &tables->sin})
      for (float& x : *table) x *= factor;
  return tables;
}

}  // namespace

std::shared_ptr<const RopeTables> rope_tables(const CpuContext& context,
                                              const std::vector<float>& frequencies, float factor,
                                              int64_t positions) {
  static std::mutex mutex;
  static std::map<Request, std::weak_ptr<const RopeTables>> made;
  const Request request{frequencies, factor, positions};
  const std::lock_guard lock(mutex);
  std::weak_ptr<const RopeTables>& known = made[request];
  std::shared_ptr<const RopeTables> tables = known.lock();
  if (tables == nullptr) known = tables = make_tables(context, request);
  return tables;
}

}  // namespace lockstep::cpu
