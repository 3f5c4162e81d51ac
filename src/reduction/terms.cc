#include "reduction/terms.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reduction/frame.h"

namespace lockstep::reduction {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostRanks = 1 << 20;
constexpr size_t kLongestSession = 128;

void need(bool holds, std::string_view what) {
  if (!holds) throw CommError("terms that cannot be: {}", what);
}

void check(const SessionTerms& terms) {
  const auto hosts = static_cast<int64_t>(terms.ends.size());
  need(!terms.session.empty() && terms.session.size() <= kLongestSession, "session");
  need(terms.ranks >= 1 && terms.ranks <= kMostRanks, "ranks");
  need(terms.rank >= 0 && terms.rank < terms.ranks, "rank");
  need(hosts >= 1 && hosts <= terms.ranks, "ends");
  need(terms.host >= 0 && terms.host < hosts, "host");
  need(terms.leaves >= 1 && terms.leaves <= kMostRanks, "leaves");
  int64_t before = 0;
  for (const int64_t end : terms.ends) {
    need(end > before && end <= terms.leaves, "ends");
    before = end;
  }
  need(before == terms.leaves, "ends");
  const LeafSplit split = terms.split();
  need(split.max_partials() <= kMostPartials && split.total_partials() <= kMostSources,
       "too many partial sums");
}

}  // namespace

std::string to_text(const SessionTerms& terms) {
  return Json{{"session", terms.session}, {"rank", terms.rank},     {"ranks", terms.ranks},
              {"host", terms.host},       {"leaves", terms.leaves}, {"ends", terms.ends}}
      .dump();
}

SessionTerms parse_terms(std::string_view text) {
  SessionTerms terms;
  try {
    const Json json = Json::parse(text);
    json.at("session").get_to(terms.session);
    json.at("rank").get_to(terms.rank);
    json.at("ranks").get_to(terms.ranks);
    json.at("host").get_to(terms.host);
    json.at("leaves").get_to(terms.leaves);
    json.at("ends").get_to(terms.ends);
  } catch (const Json::exception&) {
    throw CommError("terms that cannot be read");
  }
  check(terms);
  return terms;
}

}  // namespace lockstep::reduction
