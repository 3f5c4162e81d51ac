#include "observe/metrics_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "observe/record_json.h"

namespace lockstep {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw UserError("cannot {} {}: {}", what, path, std::strerror(errno));
}

struct Resume {
  int64_t step = 0;
  bool evaluates_again = false;
};

// Whether the line is one of a step that is at most that of the resume. A damaged one is not.
bool is_kept(std::string_view line, const Resume& resume) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return false;
  const auto found = object.find("step");
  if (found == object.end() || !found->is_number_integer() || found->get<int64_t>() > resume.step)
    return false;
  const auto kind = object.find("kind");
  const bool evaluation = kind != object.end() && *kind == "eval";
  return !(resume.evaluates_again && evaluation && found->get<int64_t>() == resume.step);
}

// Where the last line ends that is kept. Looks from the end: a resume costs as much as it drops, not as much
// as the run is long.
size_t end_of_step(std::string_view text, const Resume& resume) {
  size_t end = text.rfind('\n') + 1;  // npos + 1 is 0
  while (end > 0) {
    const size_t begin = end == 1 ? 0 : text.rfind('\n', end - 2) + 1;
    if (is_kept(text.substr(begin, end - begin), resume)) return end;
    end = begin;
  }
  return 0;
}

size_t end_of_step(int file, const std::string& path, const Resume& resume) {
  struct stat status {};
  if (fstat(file, &status) != 0) fail("read", path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return 0;
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) fail("read", path);
  const size_t end = end_of_step(std::string_view(static_cast<const char*>(bytes), size), resume);
  munmap(bytes, size);
  return end;
}

}  // namespace

MetricsFile::MetricsFile(std::string path, std::optional<int64_t> resume_step, bool evaluates_again)
    : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail("open", path_);
  try {
    const size_t end = resume_step ? end_of_step(file_, path_, {*resume_step, evaluates_again}) : 0;
    if (ftruncate(file_, static_cast<off_t>(end)) != 0) fail("truncate", path_);
  } catch (...) {
    close(file_);
    throw;
  }
}

MetricsFile::~MetricsFile() { close(file_); }

void MetricsFile::add(const StepRecord& record) { append(to_json_line(record) + "\n"); }
void MetricsFile::add(const EvalRecord& record) { append(to_json_line(record) + "\n"); }

void MetricsFile::sync() {
  // Pipes and some file systems have nothing to sync.
  if (fdatasync(file_) != 0 && errno != EINVAL) fail("sync", path_);
}

void MetricsFile::append(std::string_view line) {
  const off_t begin = lseek(file_, 0, SEEK_END);
  while (!line.empty()) {
    const ssize_t written = write(file_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      // A full disk takes half a line. Without it the file stays whole, should the run go on.
      const std::string why = std::strerror(errno);
      const bool whole = begin >= 0 && ftruncate(file_, begin) == 0;
      throw UserError("cannot write {}: {}{}", path_, why, whole ? "" : ", and its last line is torn");
    }
    line.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace lockstep
