#include "train/step/device_ways.h"

#include "train/sums/device_exchange.h"
#include "train/sums/round_sums.h"

namespace lockstep {
namespace {

std::unique_ptr<DeviceReach> owners_reach(Group& owners, Backend& backend, const TrainOptions& options) {
  return std::make_unique<DeviceReach>(owners, backend, options.reduce.way, [&](const DeviceReach& reach) {
    return options.in_rounds()
               ? RoundSums::sources(options.owned_leaves(), options.leaves, owners.size(), reach)
               : exchange_sources(owners, options.reduce.order, reach);
  });
}

std::unique_ptr<DeviceReach> reach_between_groups(const MeshGroups& groups, Backend& backend,
                                                  const TrainOptions& options) {
  Group& adding = options.in_rounds() ? *groups.replicas : *groups.data;
  const auto host = adding.host();
  const bool one_host = host && host->count == adding.size();
  if (one_host && options.reduce.way.route != DeviceRoute::kMessages) return nullptr;
  return std::make_unique<DeviceReach>(
      adding, backend, options.reduce.way,
      [&](const DeviceReach& reach) { return exchange_sources(adding, options.reduce.order, reach); },
      options.in_rounds() ? ReachBy::kMessages : ReachBy::kBoth);
}

}  // namespace

DeviceWays::DeviceWays(const MeshGroups& groups, Backend& backend, const TrainOptions& options)
    : has_groups_(groups.part != nullptr) {
  if (backend.memory() == MemoryKind::kHost) return;
  Group* const owners = groups.owners();
  if (owners != nullptr && options.reduce.exchange) {
    owners_ = owners_reach(*owners, backend, options);
    // A device's messages wait for each other, so that it sends within one group of workers alone.
    if (has_groups_ && !owners_->sends()) between_groups_ = reach_between_groups(groups, backend, options);
  }
  if (groups.tensor != nullptr)
    tensor_ = DeviceTransfers::between(*groups.tensor, backend, options.reduce.way);
}

std::string DeviceWays::text() const {
  std::vector<std::string> ways;
  if (owners_) ways.push_back(owners_->text());
  if (between_groups_) ways.push_back(fmt::format("between groups {}", between_groups_->text()));
  if (tensor_) ways.push_back(fmt::format("between tensor ranks {}", tensor_->text()));
  return fmt::format("{}", fmt::join(ways, "; "));
}

}  // namespace lockstep
