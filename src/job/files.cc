#include "job/files.h"

#include <glob.h>

#include <filesystem>

#include "base/error.h"

namespace lockstep {
namespace {

bool names_something(const std::string& pattern) {
  glob_t found{};
  const bool any = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0 && found.gl_pathc > 0;
  globfree(&found);
  return any;
}

void require_source(const JobSpec& spec, const SourceSpec& source, const std::string& path) {
  for (const std::string& pattern : source.files)
    if (!names_something(pattern))
      throw UserError("{}: {} names {}, and there is no such file; write a path or pattern seen from {}",
                      spec.where(path), path, pattern, std::filesystem::current_path().string());
}

}  // namespace

void require_files(const JobSpec& spec) {
  require_source(spec, spec.data.train, "data.train.files");
  require_source(spec, spec.data.eval, "data.eval.files");
}

}  // namespace lockstep
