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

// A number that is not whole, or longer than 64 bits, is none of these.
int64_t whole(const Json& value) {
  need(value.is_number_integer(), "a number that is not whole");
  return value.get<int64_t>();
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
    terms.rank = whole(json.at("rank"));
    terms.ranks = whole(json.at("ranks"));
    terms.host = whole(json.at("host"));
    terms.leaves = whole(json.at("leaves"));
    for (const Json& end : json.at("ends")) terms.ends.push_back(whole(end));
  } catch (const Json::exception&) {
    throw CommError("terms that cannot be read");
  }
  check(terms);
  return terms;
}

}  // namespace lockstep::reduction
