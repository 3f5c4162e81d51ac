// What a run says before its first step: the job in a few lines, with the arithmetic that follows from it.
#pragma once
#include <string>
#include <vector>

#include "comm/group.h"
#include "prepare/job_parts.h"
#include "train/sums/buckets.h"

namespace lockstep {

// `device_route`: how devices reach each other, where they have memory of their own and peers.
std::vector<std::string> announcement(const JobParts& parts, const Group* group, const Buckets& buckets,
                                      const std::string& device_route, const std::string& architecture,
                                      int64_t planned_bytes);

}  // namespace lockstep
