#include "hosts/host_box.h"

#include <sys/wait.h>

#include <filesystem>

#include "base/file.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

std::vector<std::string> box_command(const HostOptions& options, const std::string& logs,
                                     const std::vector<std::string>& command) {
  std::vector<std::string> all = {LOCKSTEP_HOSTS, "--hosts", std::to_string(options.hosts), "--logs", logs};
  if (!options.rate.empty()) all.insert(all.end(), {"--rate", options.rate});
  all.emplace_back("--");
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

std::string text_of(const std::string& path) {
  return std::filesystem::exists(path) ? read_file(path) : std::string();
}

}  // namespace

std::optional<std::string> why_no_hosts() {
  static const std::optional<std::string> reason = [] {
    const TestFolder folder;
    const Ended ended = ChildProcess({LOCKSTEP_HOSTS, "check"}, folder.path("check")).wait();
    return ended.code == 0 ? std::nullopt : std::optional(ended.out + ended.err);
  }();
  return reason;
}

HostBox::HostBox(const HostOptions& options, const std::vector<std::string>& command, std::string logs)
    : hosts_(options.hosts),
      logs_(std::move(logs)),
      process_(box_command(options, logs_, command), logs_ + "-box") {}

int HostBox::at(int host, const std::vector<std::string>& command) const {
  std::vector<std::string> all = {LOCKSTEP_HOSTS, "enter", std::to_string(process_.pid()),
                                  std::to_string(host)};
  all.insert(all.end(), command.begin(), command.end());
  return ChildProcess(all, logs_ + "-at").wait().code;
}

Ended HostBox::so_far(int host) const {
  const std::string name = logs_ + "/host" + std::to_string(host);
  return {.out = text_of(name + ".out"), .err = text_of(name + ".err")};
}

std::vector<Ended> HostBox::wait() {
  const Ended box = process_.wait();
  std::vector<Ended> all;
  for (int host = 0; host < hosts_; ++host) {
    all.push_back(so_far(host));
    const std::string code = text_of(logs_ + "/host" + std::to_string(host) + ".code");
    all.back().code = code.empty() ? -1 : std::stoi(code);
    if (code.empty()) all.back().err += box.err;  // it did not get as far as running something
  }
  return all;
}

}  // namespace lockstep
