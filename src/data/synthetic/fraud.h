// A generator of card-transaction logs with about 1 % fraud: the built-in data of the fraud template and its
// demo.
//
// Cards have habits (usual amount, home country, share of online purchases, waking hours, merchants they
// return to), take trips and go on shopping sprees. Thieves work in episodes, of four kinds: small test
// payments and then large ones; bursts of purchases within minutes; a cloned card used abroad; a single
// careful purchase. Each sign alone also occurs in honest transactions (travellers, sprees, night owls, large
// purchases, subscriptions), so a model must combine them: logistic regression stays clearly behind a small
// network. 4 % of frauds are never reported and carry label 0.
//
// Transactions come in order of time, over 60 days, and are a function of (seed, rows) with the same bits on
// every machine. What data/synthetic/fraud_shards.h writes of each is listed there.
#pragma once
#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include "data/synthetic/fraud_world.h"

namespace lockstep::fraud {

enum class Channel : uint8_t { kChip, kContactless, kSwipe, kOnline, kAtm };
std::string_view name_of(Channel channel);

struct Transaction {
  int64_t time = 0;  // seconds since the first midnight
  uint32_t card = 0;
  uint32_t merchant = 0;
  uint8_t country = 0;
  Channel channel = Channel::kChip;
  int64_t cents = 0;
  bool fraud = false;  // as reported
  // What the card's past says at this moment.
  bool first = false;  // the card was not seen before; the next three have no value
  int64_t seconds_since_last = 0;
  int64_t previous_cents = 0;
  int64_t mean_cents = 0;
  int last_hour = 0;  // transactions of the card in the hour before, at most kRemembered
  int last_day = 0;
  bool known_merchant = false;  // one of the card's last few

  static constexpr int kRemembered = 16;
};

class Generator {
 public:
  Generator(uint64_t seed, int64_t rows);

  Transaction next();
  const World& world() const { return world_; }

 private:
  enum class Scheme : uint8_t { kSpree, kTest, kBurst, kAbroad, kCareful };
  // A planned series of transactions of one card; the queue holds its next one.
  struct Episode {
    double time;
    uint64_t number;  // breaks ties
    uint32_t card;
    Scheme scheme;
    uint8_t country;
    int step;
    int steps;
    bool operator>(const Episode& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  struct History {
    uint32_t count = 0;
    int64_t total_cents = 0;
    int64_t last_cents = 0;
    uint32_t merchants = 0;            // how many were written to `recent`
    std::array<uint32_t, 4> recent{};  // merchants, whoever bought there
    uint32_t visits = 0;               // how many were written to `usual`
    std::array<uint32_t, 4> usual{};   // merchants where the owner bought
    std::array<uint32_t, Transaction::kRemembered> times{};
    uint32_t trip_until = 0;
    uint8_t trip_country = 0;
  };

  void advance(Draws& draws);
  uint32_t choose_card(Draws& draws) const;
  Transaction honest(Draws& draws);
  Transaction spree_step(const Episode& episode, Draws& draws);
  Transaction theft(const Episode& episode, Draws& draws);
  Transaction purchase(uint32_t card, uint32_t merchant, double log_amount, Draws& draws) const;
  uint32_t usual_merchant(uint32_t card, Draws& draws);
  void continue_episode(Episode episode, Draws& draws);
  void maybe_start_theft(Draws& draws);
  void maybe_start_trip(uint32_t card, Draws& draws);
  void start(Scheme scheme, uint32_t card, int steps, double delay, Draws& draws);
  int hour() const { return static_cast<int>(static_cast<int64_t>(now_) / 3600 % 24); }
  // Fills in what the card's past says, and adds the transaction to it.
  void remember(Transaction& transaction, bool by_owner);

  uint64_t seed_;
  World world_;
  std::vector<History> histories_;
  std::priority_queue<Episode, std::vector<Episode>, std::greater<>> episodes_;
  double mean_gap_;
  double now_ = 0;  // of the transaction being made
  double next_honest_ = 0;
  uint64_t row_ = 0;
  uint64_t started_ = 0;
};

}  // namespace lockstep::fraud
