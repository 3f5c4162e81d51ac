// The people and places of the card-transaction generator: cards with their habits, merchants with their
// trade.
//
// Everything here is fixed before the first transaction and a function of the seed and the number of rows.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/order/draws.h"

namespace lockstep::fraud {

struct Country {
  std::string_view code;
  int share;  // of cards and of merchants
};
std::span<const Country> countries();

struct Category {
  std::string_view name;
  int share;          // of merchants
  double log_amount;  // what is spent here against the card's usual amount
  double online;      // share of its merchants that sell online
  double risk;        // how much thieves like it
};
std::span<const Category> categories();

struct Merchant {
  uint8_t category;
  uint8_t country;
  bool online;
};

struct Card {
  uint8_t home;
  bool night_owl;
  float log_amount;  // the logarithm of its median amount
  float spread;      // the deviation of that logarithm
  float online;      // the share of purchases made online
};

class World {
 public:
  World(uint64_t seed, int64_t rows);

  uint32_t card_count() const { return static_cast<uint32_t>(cards_.size()); }
  const Card& card(uint32_t card) const { return cards_[card]; }
  uint32_t merchant_count() const { return static_cast<uint32_t>(merchants_.size()); }
  const Merchant& merchant(uint32_t merchant) const { return merchants_[merchant]; }

  // Popularity within each group follows Zipf's law.
  uint32_t shop_in(uint8_t country, Draws& draws) const;
  uint32_t online_shop(Draws& draws) const;
  // An online shop such as thieves use: a risky trade, and often one of the few that look away.
  uint32_t risky_online_shop(Draws& draws) const;
  uint32_t online_shop_of(uint8_t category, Draws& draws) const;
  uint8_t country(Draws& draws) const { return country_table_[draws.bits() >> 24]; }

 private:
  struct Group {
    std::vector<uint32_t> merchants;  // the most popular first
    double log_size = 0;              // of one more than there are

    void add(uint32_t merchant);
  };
  static uint32_t pick(const Group& group, Draws& draws);
  void open_merchants(uint64_t seed, int64_t count);
  void issue_cards(uint64_t seed, int64_t count);

  std::array<uint8_t, 256> country_table_{};
  std::array<uint8_t, 256> category_table_{};
  std::array<uint8_t, 256> risk_table_{};
  std::vector<Merchant> merchants_;
  std::vector<Card> cards_;
  std::vector<Group> shops_;               // by country
  std::vector<Group> online_by_category_;  // by category
  Group online_;
  std::vector<uint32_t> complicit_;
};

}  // namespace lockstep::fraud
