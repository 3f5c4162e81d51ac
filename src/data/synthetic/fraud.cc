#include "data/synthetic/fraud.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace lockstep::fraud {
namespace {

constexpr uint32_t kRowStream = 3;
constexpr double kDay = 86400;
constexpr double kDays = 60;

// How busy each hour is, with mean 1; and how much thieves prefer it.
constexpr std::array<double, 24> kBusy{0.25, 0.15, 0.1,  0.08, 0.1,  0.2,  0.5, 0.9, 1.2, 1.3, 1.35, 1.5,
                                       1.8,  1.6,  1.35, 1.3,  1.45, 1.75, 1.9, 1.7, 1.3, 1.0, 0.75, 0.47};
constexpr std::array<double, 24> kThieves{3.0, 3.5, 3.5, 3.5, 3.0, 2.0, 1.0, 0.7, 0.6, 0.6, 0.6, 0.7,
                                          0.7, 0.7, 0.7, 0.7, 0.7, 0.8, 0.8, 0.9, 1.0, 1.3, 1.8, 2.5};

constexpr double kTheftStart =
    0.0031;  // per honest transaction at a neutral hour: about 1 % of rows are theft
constexpr double kSpreeStart = 0.02;
constexpr double kTripStart = 0.008;
constexpr double kLargePurchase = 0.015;
constexpr double kUnreported = 0.04;

}  // namespace

std::string_view name_of(Channel channel) {
  constexpr std::array<std::string_view, 5> kNames{"chip", "contactless", "swipe", "online", "atm"};
  return kNames[static_cast<size_t>(channel)];
}

Generator::Generator(uint64_t seed, int64_t rows)
    : seed_(seed),
      world_(seed, rows),
      histories_(world_.card_count()),
      mean_gap_(kDays * kDay / static_cast<double>(std::max<int64_t>(rows, 1))) {}

Transaction Generator::next() {
  Draws draws(seed_, kRowStream, row_++);
  Transaction transaction;
  bool by_owner = true;
  if (!episodes_.empty() && episodes_.top().time <= next_honest_) {
    const Episode episode = episodes_.top();
    episodes_.pop();
    now_ = episode.time;
    by_owner = episode.scheme == Scheme::kSpree;
    transaction = by_owner ? spree_step(episode, draws) : theft(episode, draws);
    continue_episode(episode, draws);
  } else {
    now_ = next_honest_;
    transaction = honest(draws);
    maybe_start_theft(draws);
    advance(draws);
  }
  transaction.time = static_cast<int64_t>(now_);
  remember(transaction, by_owner);
  return transaction;
}

void Generator::advance(Draws& draws) {
  next_honest_ = now_ + mean_gap_ * draws.exponential() / kBusy[static_cast<size_t>(hour())];
}

// Some cards are used far more than others, and few people are awake at night.
uint32_t Generator::choose_card(Draws& draws) const {
  const bool night = hour() < 6;
  uint32_t card = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const double u = draws.uniform();
    card = static_cast<uint32_t>(world_.card_count() * u * (0.4 + 0.6 * u));
    if (!night || world_.card(card).night_owl) break;
  }
  return card;
}

uint32_t Generator::usual_merchant(uint32_t card, Draws& draws) {
  const History& history = histories_[card];
  const bool away = now_ < history.trip_until;
  if (!away && history.visits >= 4 && draws.chance(0.55)) return history.usual[draws.below(4)];
  if (draws.chance(world_.card(card).online)) return world_.online_shop(draws);
  return world_.shop_in(away ? history.trip_country : world_.card(card).home, draws);
}

Transaction Generator::purchase(uint32_t card, uint32_t merchant, double log_amount, Draws& draws) const {
  const Merchant& seller = world_.merchant(merchant);
  Transaction transaction;
  transaction.card = card;
  transaction.merchant = merchant;
  transaction.country = seller.country;
  const double amount = std::clamp(portable_exp(log_amount), 0.5, 20000.0);
  transaction.cents = static_cast<int64_t>(amount * 100 + 0.5);
  // Shops like round prices.
  if (draws.chance(0.3)) transaction.cents = std::max<int64_t>(transaction.cents / 100 * 100 - 1, 99);
  if (seller.online)
    transaction.channel = Channel::kOnline;
  else if (categories()[seller.category].name == "cash")
    transaction.channel = Channel::kAtm;
  else
    transaction.channel = draws.chance(0.5)   ? Channel::kChip
                          : draws.chance(0.7) ? Channel::kContactless
                                              : Channel::kSwipe;
  return transaction;
}

Transaction Generator::honest(Draws& draws) {
  const uint32_t card = choose_card(draws);
  maybe_start_trip(card, draws);
  const uint32_t merchant = usual_merchant(card, draws);
  const Card& owner = world_.card(card);
  double log_amount = owner.log_amount + categories()[world_.merchant(merchant).category].log_amount;
  log_amount += owner.spread * draws.normal();
  if (draws.chance(kLargePurchase)) log_amount += draws.between(1.2, 2.4);
  if (draws.chance(kSpreeStart))
    start(Scheme::kSpree, card, 2 + static_cast<int>(draws.below(4)), 600, draws);
  return purchase(card, merchant, log_amount, draws);
}

Transaction Generator::spree_step(const Episode& episode, Draws& draws) {
  const uint32_t merchant = usual_merchant(episode.card, draws);
  const Card& owner = world_.card(episode.card);
  const double usual = owner.log_amount + categories()[world_.merchant(merchant).category].log_amount;
  return purchase(episode.card, merchant, usual + 0.3 + owner.spread * draws.normal(), draws);
}

Transaction Generator::theft(const Episode& episode, Draws& draws) {
  const double usual = world_.card(episode.card).log_amount;
  const bool testing = episode.scheme == Scheme::kTest && episode.step + 2 < episode.steps;
  uint32_t merchant = world_.risky_online_shop(draws);
  if (testing) merchant = world_.online_shop(draws);
  if (episode.scheme == Scheme::kBurst && draws.chance(0.4))
    merchant = world_.shop_in(world_.card(episode.card).home, draws);
  if (episode.scheme == Scheme::kAbroad) {
    merchant = world_.shop_in(episode.country, draws);
    // One of three tries is worth the walk to a better shop.
    for (int attempt = 0; attempt < 2; ++attempt)
      if (categories()[world_.merchant(merchant).category].risk < 1)
        merchant = world_.shop_in(episode.country, draws);
  }
  double log_amount = usual;
  switch (episode.scheme) {
    case Scheme::kTest:
      log_amount = testing ? draws.between(-0.5, 1.4) : usual + 1.7 + 0.5 * draws.normal();
      break;
    case Scheme::kBurst: log_amount = usual + 0.7 + 0.6 * draws.normal(); break;
    case Scheme::kAbroad: log_amount = usual + 0.8 + 0.6 * draws.normal(); break;
    default: log_amount = usual + 0.9 + 0.5 * draws.normal(); break;
  }
  Transaction transaction = purchase(episode.card, merchant, log_amount, draws);
  if (episode.scheme == Scheme::kAbroad && transaction.channel != Channel::kAtm && draws.chance(0.4))
    transaction.channel = Channel::kSwipe;
  transaction.fraud = !draws.chance(kUnreported);
  return transaction;
}

void Generator::start(Scheme scheme, uint32_t card, int steps, double delay, Draws& draws) {
  uint8_t country = world_.country(draws);
  for (int attempt = 0; attempt < 3 && country == world_.card(card).home; ++attempt)
    country = world_.country(draws);
  episodes_.push({now_ + delay * draws.between(0.2, 1.0), started_++, card, scheme, country, 0, steps});
}

void Generator::continue_episode(Episode episode, Draws& draws) {
  if (++episode.step >= episode.steps) return;
  double pause = 0;
  switch (episode.scheme) {
    case Scheme::kSpree: pause = draws.between(120, 1800); break;
    case Scheme::kTest: pause = draws.between(30, 500); break;
    case Scheme::kBurst: pause = draws.between(20, 360); break;
    case Scheme::kAbroad: pause = draws.between(600, 7200); break;
    case Scheme::kCareful: pause = draws.between(3600, 40000); break;
  }
  episode.time += pause;
  episode.number = started_++;
  episodes_.push(episode);
}

void Generator::maybe_start_theft(Draws& draws) {
  // Honest transactions are rare at night: dividing by how busy the hour is makes the rate one of time.
  const size_t now = static_cast<size_t>(hour());
  if (!draws.chance(kTheftStart * std::min(kThieves[now] / kBusy[now], 12.0))) return;
  const uint32_t card = draws.below(world_.card_count());
  const double kind = draws.uniform();
  const int extra = static_cast<int>(draws.below(4));
  if (kind < 0.3)
    start(Scheme::kTest, card, 3 + extra, 300, draws);
  else if (kind < 0.5)
    start(Scheme::kBurst, card, 4 + extra, 300, draws);
  else if (kind < 0.75)
    start(Scheme::kAbroad, card, 2 + extra / 2, 3600, draws);
  else
    start(Scheme::kCareful, card, 1 + extra / 3, 3600, draws);
}

void Generator::maybe_start_trip(uint32_t card, Draws& draws) {
  History& history = histories_[card];
  if (now_ < history.trip_until || !draws.chance(kTripStart)) return;
  history.trip_until = static_cast<uint32_t>(now_ + kDay * draws.between(2, 9));
  history.trip_country = world_.country(draws);
}

void Generator::remember(Transaction& transaction, bool by_owner) {
  History& history = histories_[transaction.card];
  const uint32_t time = static_cast<uint32_t>(transaction.time);
  transaction.first = history.count == 0;
  if (!transaction.first) {
    transaction.seconds_since_last = time - history.times[(history.count - 1) % Transaction::kRemembered];
    transaction.previous_cents = history.last_cents;
    transaction.mean_cents = history.total_cents / history.count;
  }
  const uint32_t kept = std::min<uint32_t>(history.count, Transaction::kRemembered);
  for (uint32_t i = 0; i < kept; ++i) {
    transaction.last_hour += time - history.times[i] <= 3600;
    transaction.last_day += time - history.times[i] <= 86400;
  }
  const auto known = [&](const std::array<uint32_t, 4>& merchants, uint32_t written) {
    const auto end = merchants.begin() + std::min<uint32_t>(written, 4);
    return std::find(merchants.begin(), end, transaction.merchant) != end;
  };
  transaction.known_merchant = known(history.recent, history.merchants);
  if (!transaction.known_merchant) history.recent[history.merchants++ % 4] = transaction.merchant;
  if (by_owner && !known(history.usual, history.visits))
    history.usual[history.visits++ % 4] = transaction.merchant;
  history.times[history.count % Transaction::kRemembered] = time;
  history.total_cents += transaction.cents;
  history.last_cents = transaction.cents;
  history.count += 1;
}

}  // namespace lockstep::fraud
