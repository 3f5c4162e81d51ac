// The store with workers as threads, and with strangers at its door. All on loopback, on ports the kernel
// chooses.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "launch/join.h"
#include "launch/store_client.h"
#include "launch/store_server.h"
#include "launch/token.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLong{20000};
constexpr milliseconds kShort{100};
const std::string kToken = "0123456789abcdef";

StoreOptions options() {
  StoreOptions options;
  options.token = kToken;
  return options;
}

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// Somebody who can only push bytes through the door.
class Stranger {
 public:
  explicit Stranger(const StoreServer& server)
      : socket_(connect_to(server.address(), steady_clock::now() + kLong)) {}

  void say(std::string_view bytes) const { ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Greets as a worker and proves to be one.
  void become_worker(const std::string& name) const {
    say(encode({MessageKind::kHello, {"lockstep-store-1", name, "nonce"}}));
    const StoreMessage challenge = hear();
    say(encode({MessageKind::kProof, {proof_of(kToken, "client", name, "nonce", challenge.fields.at(0))}}));
    EXPECT_EQ(hear().kind, MessageKind::kWelcome);
  }
  // The next message. For conversations, in which nothing else can have come yet.
  StoreMessage hear() const {
    FrameReader reader(kFrameLimit);
    char buffer[512];
    while (wait_readable(socket_, steady_clock::now() + kLong)) {
      const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) break;
      reader.feed({buffer, static_cast<size_t>(got)});
      if (auto message = reader.next()) return *message;
    }
    throw CommError("the store hung up");
  }
  // Everything until the store hangs up.
  std::string listen() const {
    std::string heard;
    char buffer[4096];
    while (wait_readable(socket_, steady_clock::now() + kLong)) {
      const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return heard;
      heard.append(buffer, static_cast<size_t>(got));
    }
    return "the store did not hang up";
  }

 private:
  Descriptor socket_;
};

TEST(Store, RemembersAddsAndLists) {
  const StoreServer server(options());
  StoreClient client(server.address(), kToken, "worker-0", kLong);
  client.set("a/1", "one");
  client.set("a/2", std::string(1 << 20, 'x'));
  client.set("b", "");
  EXPECT_EQ(client.get("a/1", kLong), "one");
  EXPECT_EQ(client.get("b", kLong), "");
  EXPECT_EQ(client.add("n", 5), 5);
  EXPECT_EQ(client.add("n", -7), -2);
  expect_contains(error_of([&] { client.add("a/1", 1); }), "a/1 is no number that can be added to");
  const auto entries = client.list("a/");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.at("a/2").size(), size_t{1} << 20);
}

TEST(Store, AGetWaitsForTheSet) {
  const StoreServer server(options());
  StoreClient reader(server.address(), kToken, "worker-0", kLong);
  std::string got;
  std::thread waiting([&] { got = reader.get("key", kLong); });
  StoreClient writer(server.address(), kToken, "worker-1", kLong);
  writer.set("key", "value");
  waiting.join();
  EXPECT_EQ(got, "value");
}

TEST(Store, AWaitThatIsNotMetSaysForWhat) {
  const StoreServer server(options());
  StoreClient client(server.address(), kToken, "worker-1", kLong);
  expect_contains(error_of([&] { client.get("key", kShort); }),
                  "worker-1 waited 0.1 s at the store 127.0.0.1:");
  expect_contains(
      error_of([&] { client.barrier("start", 3, kShort); }),
      "worker-1 waited 0.1 s at the barrier 'start': 1 of 3 workers came; missing: worker-0, worker-2");
  client.set("key", "value");
  EXPECT_EQ(client.get("key", kShort), "value");
}

TEST(Store, ALostWorkerEndsTheWaitsOfTheOthers) {
  const StoreServer server(options());
  StoreClient client(server.address(), kToken, "worker-0", kLong);
  std::string error;
  std::thread waiting([&] { error = error_of([&] { client.barrier("step", 2, kLong); }); });
  {
    const Stranger gone_without_goodbye(server);
    gone_without_goodbye.become_worker("worker-1");
  }
  waiting.join();
  expect_contains(error, "barrier 'step': worker-1 is lost: its connection to the store ended");
  expect_contains(error_of([&] { client.get("never set", kLong); }), "worker-1 is lost");
}

TEST(Store, AWorkerThatSaysGoodbyeIsNotLost) {
  const StoreServer server(options());
  StoreClient client(server.address(), kToken, "worker-0", kLong);
  { const StoreClient other(server.address(), kToken, "worker-1", kLong); }
  expect_contains(error_of([&] { client.get("key", kShort); }), "which nobody set");
  EXPECT_EQ(server.dropped(), 0);
}

// The store is busy and answers late: it finds the goodbye behind the proof.
TEST(Store, AWorkerThatGivesUpBeforeItIsWelcomedIsNotLost) {
  const Descriptor listener = listen_on({"127.0.0.1", 0});
  std::vector<MessageKind> heard;
  std::thread busy([&] {
    ASSERT_TRUE(wait_readable(listener, steady_clock::now() + kLong));
    const Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string challenge = encode({MessageKind::kChallenge, {"nonce"}});
    ::send(socket.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL);
    FrameReader reader(kFrameLimit);
    char buffer[512];
    for (ssize_t got = 0; (got = recv(socket.get(), buffer, sizeof buffer, 0)) > 0;) {
      reader.feed({buffer, static_cast<size_t>(got)});
      while (const auto message = reader.next()) heard.push_back(message->kind);
    }
  });
  expect_contains(error_of([&] {
                    StoreClient client({"127.0.0.1", bound_port(listener)}, kToken, "worker-0", kShort);
                  }),
                  "it does not answer in time");
  busy.join();
  EXPECT_EQ(heard, (std::vector<MessageKind>{MessageKind::kHello, MessageKind::kProof, MessageKind::kBye}));
}

TEST(Store, TheWrongTokenIsRefused) {
  const StoreServer server(options());
  EXPECT_THROW(StoreClient(server.address(), "another token here", "worker-0", kLong), TokenRefused);
  EXPECT_EQ(server.dropped(), 1);
}

TEST(Store, TwoProcessesOfOneRankAreTold) {
  const StoreServer server(options());
  const StoreClient first(server.address(), kToken, "worker-3", kLong);
  expect_contains(error_of([&] { StoreClient(server.address(), kToken, "worker-3", kLong); }),
                  "worker-3 is here already, from 127.0.0.1:");
}

TEST(Store, AServerThatDoesNotKnowTheTokenIsNotBelieved) {
  const Descriptor listener = listen_on({"127.0.0.1", 0});
  std::thread impostor([&] {
    ASSERT_TRUE(wait_readable(listener, steady_clock::now() + kLong));
    const Descriptor socket(accept(listener.get(), nullptr, nullptr));
    const std::string lines =
        encode({MessageKind::kChallenge, {"nonce"}}) + encode({MessageKind::kWelcome, {"x"}});
    ::send(socket.get(), lines.data(), lines.size(), MSG_NOSIGNAL);
    char buffer[512];
    while (recv(socket.get(), buffer, sizeof buffer, 0) > 0) {
    }
  });
  expect_contains(error_of([&] {
                    StoreClient({"127.0.0.1", bound_port(listener)}, kToken, "worker-0", kLong);
                  }),
                  "it does not know the token itself");
  impostor.join();
}

TEST(Store, StrangersAreDroppedAndDisturbNobody) {
  StoreOptions quick = options();
  quick.stranger_time = kShort;
  const StoreServer server(quick);
  StoreClient client(server.address(), kToken, "worker-0", kLong);
  const std::string greeting = encode({MessageKind::kHello, {"lockstep-store-1", "worker-9", "nonce"}});
  const std::string cases[] = {
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      std::string("\xff\xff\xff\xff", 4),
      std::string(3, '\0'),
      std::string(100000, '\x01'),
      encode({MessageKind::kSet, {"key", "stolen"}}),
      encode({MessageKind::kHello, {"lockstep-store-9", "worker-9", "nonce"}}),
      greeting,             // and then nothing
      greeting + greeting,  // instead of a proof
      greeting.substr(0, greeting.size() / 2),
      "",
  };
  int64_t dropped = 0;
  for (const std::string& bytes : cases) {
    const Stranger stranger(server);
    stranger.say(bytes);
    EXPECT_EQ(stranger.listen().find("did not hang up"), std::string::npos);
    client.set("alive", "yes");
    EXPECT_EQ(server.dropped(), ++dropped);
  }
  EXPECT_EQ(client.list("key").size(), 0u);
}

TEST(Store, MoreStrangersThanAllowedPushOutEachOther) {
  StoreOptions few = options();
  few.most_strangers = 4;
  const StoreServer server(few);
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 40; ++i) crowd.push_back(std::make_unique<Stranger>(server));
  StoreClient client(server.address(), kToken, "worker-0", kLong);
  client.set("key", "value");
  EXPECT_GE(server.dropped(), 36);
}

TEST(Store, StrangersAreCountedAndNotLoggedOneByOne) {
  testing::internal::CaptureStderr();
  {
    const StoreServer server(options());
    for (int i = 0; i < 30; ++i) {
      const Stranger stranger(server);
      stranger.say(std::string(100, static_cast<char>(i)) + "\x1b[2J");
      stranger.listen();
    }
    EXPECT_EQ(server.dropped(), 30);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 3) << log;
  expect_contains(log, "turned away a stranger at 127.0.0.1:");
  expect_contains(log, "times it sent what no worker sends");
  EXPECT_EQ(log.find('\x1b'), std::string::npos) << log;
}

TEST(Store, AWorkerThatDoesNotReadIsDroppedAndTheOthersGoOn) {
  StoreOptions impatient = options();
  impatient.stuck_time = kShort;
  const StoreServer server(impatient);
  StoreClient client(server.address(), kToken, "worker-0", kLong);
  client.set("large", std::string(size_t{8} << 20, 'x'));
  // Asks for far more than the sockets hold, and reads nothing.
  const Stranger slow(server);
  slow.become_worker("worker-1");
  for (int i = 0; i < 16; ++i) slow.say(encode({MessageKind::kGet, {"large", "0"}}));
  const TimePoint until = steady_clock::now() + kLong;
  while (server.dropped() == 0 && steady_clock::now() < until) client.set("alive", "yes");
  EXPECT_EQ(server.dropped(), 1);
}

TEST(Store, APortInUseIsNamed) {
  const StoreServer server(options());
  StoreOptions same = options();
  same.listen = server.address();
  expect_contains(error_of([&] { const StoreServer second(same); }),
                  fmt::format("port {} of 127.0.0.1 is in use by another program", server.address().port));
}

TEST(Store, NobodyThereIsToldAfterTheDeadline) {
  int64_t port = 0;
  {
    const Descriptor listener = listen_on({"127.0.0.1", 0});
    port = bound_port(listener);
  }
  expect_contains(error_of([&] {
                    StoreClient({"127.0.0.1", port}, kToken, "worker-2", kShort);
                  }),
                  "worker-2 cannot join the store at 127.0.0.1:");
}

// Runs one function per worker, each on a thread with a client of its own; gives the errors by rank.
template <typename Work>
std::vector<std::string> on_workers(const StoreServer& server, int64_t size, Work work) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      errors[static_cast<size_t>(rank)] = error_of([&] {
        StoreClient client(server.address(), kToken, fmt::format("worker-{}", rank), kLong);
        work(client, rank);
      });
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(Store, ManyWorkersCountAndMeet) {
  const StoreServer server(options());
  constexpr int64_t kWorkers = 48;
  const auto errors = on_workers(server, kWorkers, [&](StoreClient& client, int64_t) {
    for (int round = 0; round < 3; ++round) {
      client.add("sum", 1);
      client.barrier("round", kWorkers, kLong);
      EXPECT_GE(std::stoll(client.get("sum", kLong)), (round + 1) * kWorkers);
      client.barrier("read", kWorkers, kLong);
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "no error");
  EXPECT_EQ(server.dropped(), 0);
}

TEST(Join, GivesEverybodysFacts) {
  const StoreServer server(options());
  const auto errors = on_workers(server, 5, [&](StoreClient& client, int64_t rank) {
    const WorkerFacts facts = {{{"version", "1"}}, {{"host", fmt::format("h{}", rank)}}};
    const auto all = join(client, rank, 5, facts, kLong);
    ASSERT_EQ(all.size(), 5u);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].own.at("host"), fmt::format("h{}", i));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "no error");
}

TEST(Join, AllNameTheWorkerThatDiffers) {
  const StoreServer server(options());
  const auto errors = on_workers(server, 4, [&](StoreClient& client, int64_t rank) {
    const WorkerFacts facts = {{{"identity", rank == 2 ? "abc" : "def"}, {"version", "1"}},
                               {{"host", "gpu1"}}};
    join(client, rank, 4, facts, kLong);
  });
  for (const std::string& error : errors)
    EXPECT_EQ(
        error,
        "the workers are not about to run the same thing: identity: worker-2 on gpu1 has abc, but worker-0 "
        "(and 2 more) has def; give all of them the same job file, data and version of Lockstep");
}

TEST(Join, NamesWhoDoesNotCome) {
  const StoreServer server(options());
  StoreClient client(server.address(), kToken, "worker-1", kLong);
  expect_contains(error_of([&] { join(client, 1, 2, {}, kShort); }), "missing: worker-0");
}

TEST(Join, DifferencesAreListedByFact) {
  EXPECT_EQ(differences({}), "");
  EXPECT_EQ(differences({{{{"a", "1"}}, {}}, {{{"a", "1"}}, {}}}), "");
  EXPECT_EQ(differences({{{{"a", "1"}}, {}}, {{{"a", "2"}, {"b", "x"}}, {}}}),
            "a: worker-1 has 2, but worker-0 has 1; b: worker-1 has x, but worker-0 has (nothing)");
}

}  // namespace
}  // namespace lockstep
