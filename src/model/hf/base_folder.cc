#include "model/hf/base_folder.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_pool.h"

namespace lockstep {

std::string to_text(const BaseFolder& base) {
  const nlohmann::ordered_json json = {{"folder", base.folder}, {"weights_sha256", base.sha256}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

BaseFolder parse_base_folder(std::string_view text, const std::string& path) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  BaseFolder base;
  for (auto& [name, into] : {std::pair{"folder", &base.folder}, {"weights_sha256", &base.sha256}}) {
    const bool there = json.is_object() && json.contains(name) && json[name].is_string();
    if (!there) throw UserError("{}: there is no text \"{}\" in it", path, name);
    *into = json[name].get<std::string>();
  }
  return base;
}

void require_base_weights(const HfSource& source, const BaseFolder& base, const std::string& checkpoint,
                          int threads) {
  std::vector<const StoredTensor*> tensors;
  for (const WeightMatch::Taken& taken : source.match().taken) tensors.push_back(taken.from);
  ThreadPool pool(threads);
  const std::string found = hash_of_tensors(*source.files(), std::move(tensors), pool);
  if (found != base.sha256)
    throw UserError(
        "{} holds what was trained alone, beside the weights that lay in {}; those that lie there now are "
        "others (their hash is {}, not {}): put the folder back that the run began with",
        checkpoint, source.files()->folder(), found.substr(0, 12), base.sha256.substr(0, 12));
}

}  // namespace lockstep
