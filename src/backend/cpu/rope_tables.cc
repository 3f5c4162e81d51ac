#include "backend/cpu/rope_tables.h"

#include <map>
#include <mutex>

#include "backend/cpu/simd/simd.h"

namespace lockstep::cpu {
namespace {

using Request = std::pair<std::vector<float>, int64_t>;

std::shared_ptr<const RopeTables> make_tables(const CpuContext& context, const Request& request) {
  const auto& frequencies = request.first;
  const int64_t positions = request.second;
  const auto pairs = static_cast<int64_t>(frequencies.size());
  auto tables = std::make_shared<RopeTables>();
  tables->cos.resize(static_cast<size_t>(positions * pairs));
  tables->sin.resize(static_cast<size_t>(positions * pairs));
  for_rows(context, positions, rows_per_task(pairs * 16), [&](int64_t begin, int64_t end) {
    context.simd.rope.fill_tables(frequencies.data(), pairs, begin, end, tables->cos.data(),
                                  tables->sin.data());
  });
  return tables;
}

}  // namespace

std::shared_ptr<const RopeTables> rope_tables(const CpuContext& context,
                                              const std::vector<float>& frequencies, int64_t positions) {
  static std::mutex mutex;
  static std::map<Request, std::weak_ptr<const RopeTables>> made;
  const Request request{frequencies, positions};
  const std::lock_guard lock(mutex);
  std::weak_ptr<const RopeTables>& known = made[request];
  std::shared_ptr<const RopeTables> tables = known.lock();
  if (tables == nullptr) known = tables = make_tables(context, request);
  return tables;
}

}  // namespace lockstep::cpu
