#include "data/synthetic/fraud_world.h"

#include <algorithm>

#include "base/portable_math.h"

namespace lockstep::fraud {
namespace {

enum Stream : uint32_t { kMerchantStream = 1, kCardStream = 2 };

constexpr std::array<Country, 16> kCountries{{{"US", 24},
                                              {"GB", 12},
                                              {"DE", 11},
                                              {"FR", 9},
                                              {"ES", 7},
                                              {"IT", 6},
                                              {"NL", 5},
                                              {"PL", 5},
                                              {"SE", 4},
                                              {"CA", 4},
                                              {"JP", 4},
                                              {"BR", 3},
                                              {"MX", 2},
                                              {"TR", 2},
                                              {"TH", 1},
                                              {"ZA", 1}}};

constexpr std::array<Category, 16> kCategories{{{"grocery", 22, 0.0, 0.08, 0.2},
                                                {"restaurant", 16, -0.2, 0.05, 0.2},
                                                {"fuel", 9, 0.3, 0.0, 0.6},
                                                {"clothing", 9, 0.6, 0.5, 1.2},
                                                {"pharmacy", 7, -0.3, 0.2, 0.3},
                                                {"transport", 6, -0.8, 0.4, 0.4},
                                                {"home", 5, 0.9, 0.4, 0.8},
                                                {"services", 5, 0.4, 0.5, 0.6},
                                                {"entertainment", 4, 0.0, 0.6, 0.8},
                                                {"subscription", 4, -0.9, 1.0, 1.0},
                                                {"electronics", 3, 1.3, 0.6, 5.0},
                                                {"travel", 3, 1.6, 0.7, 1.5},
                                                {"gaming", 2, -0.4, 1.0, 4.0},
                                                {"cash", 2, 0.8, 0.0, 2.5},
                                                {"gift_card", 2, 0.3, 0.8, 7.0},
                                                {"jewelry", 1, 1.7, 0.4, 4.0}}};

// Entry i is what a draw of i in [0, 256) means; weights are rounded to 256ths and none vanishes.
template <typename Weight>
std::array<uint8_t, 256> draw_table(size_t count, const Weight& weight) {
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  std::array<uint8_t, 256> table{};
  double before = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = static_cast<size_t>(before / total * 256);
    before += weight(i);
    for (size_t j = begin; j < 256; ++j) table[j] = static_cast<uint8_t>(i);
  }
  return table;
}

}  // namespace

std::span<const Country> countries() { return kCountries; }
std::span<const Category> categories() { return kCategories; }

World::World(uint64_t seed, int64_t rows) {
  country_table_ = draw_table(kCountries.size(), [](size_t i) { return double(kCountries[i].share); });
  category_table_ = draw_table(kCategories.size(), [](size_t i) { return double(kCategories[i].share); });
  risk_table_ = draw_table(kCategories.size(), [](size_t i) {
    return kCategories[i].online > 0 ? kCategories[i].risk * kCategories[i].risk : 0.0;
  });
  open_merchants(seed, std::clamp<int64_t>(rows / 250, 600, 20000));
  issue_cards(seed, std::clamp<int64_t>(rows / 100, 20, 50000000));
}

void World::open_merchants(uint64_t seed, int64_t count) {
  shops_.resize(kCountries.size());
  online_by_category_.resize(kCategories.size());
  const auto open = [&](Merchant merchant) {
    const uint32_t id = static_cast<uint32_t>(merchants_.size());
    merchants_.push_back(merchant);
    if (!merchant.online) {
      shops_[merchant.country].add(id);
      return;
    }
    online_.add(id);
    online_by_category_[merchant.category].add(id);
    if (id % 16 == 5) complicit_.push_back(id);
  };
  // At least one shop in each country, and one online shop in each trade.
  for (size_t i = 0; i < kCountries.size(); ++i) open({0, static_cast<uint8_t>(i), false});
  for (size_t i = 0; i < kCategories.size(); ++i) open({static_cast<uint8_t>(i), 0, true});
  while (static_cast<int64_t>(merchants_.size()) < count) {
    Draws draws(seed, kMerchantStream, merchants_.size());
    const uint8_t category = category_table_[draws.bits() >> 24];
    open({category, country(draws), draws.chance(kCategories[category].online)});
  }
}

void World::issue_cards(uint64_t seed, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Draws draws(seed, kCardStream, static_cast<uint64_t>(i));
    Card card;
    card.home = country(draws);
    card.night_owl = draws.chance(0.12);
    card.log_amount = static_cast<float>(3.1 + 0.55 * draws.normal());
    card.spread = static_cast<float>(draws.between(0.45, 0.95));
    card.online = static_cast<float>(draws.between(0.05, 0.65));
    cards_.push_back(card);
  }
}

// A transaction asks for the logarithm, and the merchants are far fewer.
void World::Group::add(uint32_t merchant) {
  merchants.push_back(merchant);
  log_size = portable_log(static_cast<double>(merchants.size()) + 1.0);
}

// Rank k is drawn with probability about 1 / (k log count).
uint32_t World::pick(const Group& group, Draws& draws) {
  const double rank = portable_exp(draws.uniform() * group.log_size);
  return group.merchants[std::min(static_cast<size_t>(rank), group.merchants.size()) - 1];
}

uint32_t World::shop_in(uint8_t country, Draws& draws) const { return pick(shops_[country], draws); }
uint32_t World::online_shop(Draws& draws) const { return pick(online_, draws); }

uint32_t World::online_shop_of(uint8_t category, Draws& draws) const {
  return pick(online_by_category_[category], draws);
}

uint32_t World::risky_online_shop(Draws& draws) const {
  if (!complicit_.empty() && draws.chance(0.2)) return complicit_[draws.below(complicit_.size())];
  return online_shop_of(risk_table_[draws.bits() >> 24], draws);
}

}  // namespace lockstep::fraud
