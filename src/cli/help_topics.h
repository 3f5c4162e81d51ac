// Short texts on what no single command explains: `lockstep help TOPIC`.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct HelpTopic {
  std::string_view name, summary, text;
};
std::span<const HelpTopic> help_topics();

// Their names, and those of the job file's sections.
std::vector<std::string> help_topic_names();

}  // namespace lockstep
