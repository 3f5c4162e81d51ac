#include "fuzz/tar.h"

#include "base/error.h"
#include "data/pixels/decode.h"
#include "data/shards/shard_set.h"
#include "data/tar/tar_members.h"
#include "fuzz/repair.h"

namespace lockstep::testing {
namespace {

bool check(const FormatOptions& options, const std::string& archive) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(open_text("t.tar", archive));
  try {
    const ShardSet set(make_tar_format(options), std::move(shards), {.most_bad = 1});
    BlockScratch scratch;
    StageCounters counters;
    set.load(0, set.manifest().records(), scratch, counters);
    check_block(scratch.block);
    for (const std::string_view image : scratch.block.column("image").as<std::string_view>()) {
      LOCKSTEP_CHECK(archive.find(image) != std::string::npos, "an image that is not in the archive");
      LOCKSTEP_CHECK(options.bad == BadRecords::kStop || image_problem(image).empty(), "a broken image");
    }
    for (const std::string_view name : scratch.block.column("class").as<std::string_view>())
      LOCKSTEP_CHECK(!name.empty(), "a record without a class");
  } catch (const UserError&) {
    return false;
  }
  return true;
}

}  // namespace

bool check_tar(std::string_view bytes) {
  if (bytes.empty()) return false;
  FormatOptions options;
  if ((bytes[0] & 1) != 0) options.bad = BadRecords::kSkip;
  if (check(options, std::string(bytes.substr(1)))) return true;
  check(options, repaired_tar(bytes.substr(1)));
  return false;
}

}  // namespace lockstep::testing
