#include "reduction/served_transport.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <thread>

#include "comm/tree_testing.h"
#include "comm/wire/wire_testing.h"
#include "launch/handshake.h"
#include "launch/store_message.h"
#include "launch/token.h"
#include "reduction/server.h"

namespace lockstep::reduction {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

const std::string kToken = "0123456789abcdef0123456789abcdef";

// A server on a thread of its own, for as long as the object lives.
class RunningServer {
 public:
  RunningServer() : server_(ServerOptions{.token = kToken, .stranger_time = milliseconds(300)}) {
    thread_ = std::thread([this] {
      while (const auto report = server_.serve(stop_)) last_ = *report;
    });
  }
  ~RunningServer() {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  HostPort address() const { return server_.address(); }
  int64_t strangers() const { return server_.strangers(); }

 private:
  ReductionServer server_;
  Descriptor stop_{eventfd(0, EFD_CLOEXEC)};
  SessionReport last_;
  std::thread thread_;
};

struct Served {
  std::vector<HostPort> servers;
  WaitLimits limits = {.stall = milliseconds(5000), .deadline = milliseconds(20000)};
};

std::vector<std::unique_ptr<ServerLink>> links_to(const Served& served, const wire::HostMap& map,
                                                  const LeafSplit& split, int rank) {
  SessionTerms terms{.session = "run",
                     .rank = rank,
                     .ranks = map.ranks(),
                     .host = map.host_of(rank),
                     .leaves = split.leaves()};
  for (int host = 0; host < map.hosts(); ++host)
    terms.ends.push_back(split.range(map.first(host) + map.size(host) - 1).end);
  std::vector<std::unique_ptr<ServerLink>> links;
  for (size_t i = 0; i < served.servers.size(); ++i)
    links.push_back(std::make_unique<ServerLink>(static_cast<int>(i), served.servers[i], kToken, terms,
                                                 steady_clock::now() + milliseconds(5000)));
  return links;
}

// Ranks are threads on pretended hosts, as in comm/wire/wire_testing.h.
std::vector<std::exception_ptr> run_served(const std::vector<int>& sizes, const LeafSplit& split,
                                           const Served& served, const testing::Body& body) {
  const wire::HostMap map = testing::hosts_of(sizes);
  const shm::ShmOptions options = testing::test_options();
  shm::ThreadMeeting between(map.ranks());
  std::vector<std::unique_ptr<shm::ThreadMeeting>> local;
  for (const int size : sizes) local.push_back(std::make_unique<shm::ThreadMeeting>(size));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(map.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < map.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        const int host = map.host_of(rank);
        shm::ShmOptions here = options;
        here.first_rank = map.first(host);
        auto neighbours =
            map.shares() ? local[static_cast<size_t>(host)]->join(map.local_rank(rank), here) : nullptr;
        shm::ShmTransport* const shared = neighbours.get();
        auto under =
            std::make_unique<wire::HostsTransport>(map, std::move(neighbours), between.join(rank, options));
        Group group(std::make_unique<ServedTransport>(
                        std::move(under), links_to(served, map, split, rank),
                        ServedOptions{.map = map, .local = shared, .split = split, .limits = served.limits}),
                    split);
        body(group);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

template <typename T>
void expect_tree_sum(Group& group, int64_t count) {
  const auto sums = testing::partial_sums<T>(group.split(), group.rank(), count);
  std::vector<SharedBuffer> buffers;
  std::vector<void*> partials;
  for (const auto& sum : sums) {
    buffers.push_back(group.allocate(count * static_cast<int64_t>(sizeof(T))));
    std::memcpy(buffers.back().data(), sum.data(), sum.size() * sizeof(T));
    partials.push_back(buffers.back().data());
  }
  group.all_reduce({.type = std::is_integral_v<T> ? SumType::kI64 : SumType::kF32,
                    .count = count,
                    .partials = partials,
                    .label = "a bucket"});
  EXPECT_TRUE(
      testing::same_bits(buffers[0].as<T>(), testing::expected_root<T>(group.split().leaves(), count)))
      << "rank " << group.rank() << " of " << group.split().text();
}

constexpr int64_t kCount = 50'001;  // elements: several chunks, the last one short

TEST(ServedTransport, SumsAreTheTreesForEveryMapOfHostsAndNumberOfServers) {
  for (int servers = 1; servers <= 3; ++servers) {
    std::vector<std::vector<int>> maps = testing::all_host_maps(3);
    maps.push_back({2, 2});
    maps.push_back({1, 1, 1, 1});
    for (const std::vector<int>& sizes : maps) {
      // A run has servers of its own.
      std::vector<std::unique_ptr<RunningServer>> running;
      Served served;
      for (int i = 0; i < servers; ++i) {
        running.push_back(std::make_unique<RunningServer>());
        served.servers.push_back(running.back()->address());
      }
      const int ranks = testing::hosts_of(sizes).ranks();
      testing::expect_no_errors(run_served(sizes, LeafSplit::search(7, ranks), served, [&](Group& group) {
        expect_tree_sum<float>(group, kCount);
        expect_tree_sum<int64_t>(group, kCount);
        expect_tree_sum<float>(group, 100);  // too small for servers
        const ServedFigures figures = *group.served();
        EXPECT_EQ(figures.sums, 2);
        EXPECT_EQ(figures.fallbacks, 0);
        EXPECT_EQ(figures.alive, servers);
      }));
    }
  }
}

TEST(ServedTransport, AHostSendsItsSumsOnceAndGetsTheRootOnce) {
  RunningServer server;
  testing::expect_no_errors(
      run_served({1, 1, 1, 1}, LeafSplit::search(4, 4), {{server.address()}}, [&](Group& group) {
        const int64_t bytes = 1 << 20;
        expect_tree_sum<float>(group, bytes / 4);
        const ServedFigures figures = *group.served();
        for (const int64_t moved : {figures.bytes_sent, figures.bytes_received}) {
          EXPECT_GE(moved, bytes);
          EXPECT_LT(moved, bytes + bytes / 100);
        }
      }));
}

// Speaks as a server does, up to a point that a test chooses.
class FakeServer {
 public:
  // Called with every frame of sums, in its connection's thread; false ends this server's connections.
  struct Frame {
    int64_t rank;
    int64_t number;  // of this connection's frames, from 1
  };
  // What to do with a frame of sums.
  enum class Then { kAnswer, kAnswerRankZeroAlone, kSilence, kEnd };
  FakeServer(const std::vector<int>& sizes, const LeafSplit& split, std::function<Then(Frame)> then)
      : ranks_(testing::hosts_of(sizes).ranks()),
        terms_(terms(sizes, split)),
        reducer_(terms_),
        then_(std::move(then)),
        listener_(listen_on({"127.0.0.1", 0})) {
    thread_ = std::thread([this] { accept_all(); });
  }
  ~FakeServer() {
    thread_.join();
    end();
    for (std::thread& one : threads_) one.join();
  }
  HostPort address() const { return {"127.0.0.1", bound_port(listener_)}; }

 private:
  static SessionTerms terms(const std::vector<int>& sizes, const LeafSplit& split) {
    const wire::HostMap map = testing::hosts_of(sizes);
    SessionTerms terms{.session = "run", .ranks = map.ranks(), .leaves = split.leaves()};
    for (int host = 0; host < map.hosts(); ++host)
      terms.ends.push_back(split.range(map.first(host) + map.size(host) - 1).end);
    return terms;
  }

  void accept_all() {
    for (int i = 0; i < ranks_; ++i) {
      ASSERT_TRUE(wait_readable(listener_, steady_clock::now() + milliseconds(5000)));
      Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const int number = socket.get();
      {
        const std::lock_guard lock(mutex_);
        sockets_.push_back(std::move(socket));
      }
      threads_.emplace_back([this, number] { serve(number); });
    }
  }

  static bool read_all(int socket, void* into, size_t bytes) {
    return recv(socket, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }
  static void write_all(int socket, const void* from, size_t bytes) {
    send(socket, from, bytes, MSG_NOSIGNAL);
  }

  void serve(int number) {
    const Descriptor borrowed(dup(number));
    recognise(borrowed, kReductionProtocol, kToken, steady_clock::now() + milliseconds(5000));
    HeaderBytes bytes;
    int64_t rank = -1, host = -1, frames = 0;
    while (read_all(number, bytes.data(), bytes.size())) {
      const FrameHeader header = decode(bytes);
      Bytes payload(new std::byte[header.payload + 1]);
      if (header.payload > 0 && !read_all(number, payload.get(), header.payload)) return;
      if (header.kind == FrameKind::kBye) return;
      if (header.kind == FrameKind::kJoin) {
        const SessionTerms who = parse_terms({reinterpret_cast<const char*>(payload.get()), header.payload});
        rank = who.rank;
        host = who.host;
        {
          const std::lock_guard lock(mutex_);
          socket_of_[rank] = number;
        }
        const HeaderBytes welcome = encode({.kind = FrameKind::kWelcome, .chunk = 8});
        write_all(number, welcome.data(), welcome.size());
        continue;
      }
      const Then then = then_({rank, ++frames});
      if (then == Then::kSilence) continue;
      if (then == Then::kEnd) return end();
      const auto root = reducer_.add({.host = host, .rank = rank, .header = header, .data = payload});
      if (!root) continue;
      const HeaderBytes answer = encode(root->header);
      const std::lock_guard lock(mutex_);
      for (const int64_t to : root->ranks) {
        if (then == Then::kAnswerRankZeroAlone && to != 0) continue;
        write_all(socket_of_[to], answer.data(), answer.size());
        write_all(socket_of_[to], root->data.get(), root->header.payload);
      }
      if (then == Then::kAnswerRankZeroAlone) {
        for (const Descriptor& socket : sockets_) shutdown(socket.get(), SHUT_WR);
      }
    }
  }

  void end() {
    const std::lock_guard lock(mutex_);
    for (const Descriptor& socket : sockets_) shutdown(socket.get(), SHUT_RDWR);
  }

  int ranks_;
  SessionTerms terms_;
  Reducer reducer_;
  std::function<Then(Frame)> then_;
  Descriptor listener_;
  std::mutex mutex_;
  std::vector<Descriptor> sockets_;
  std::map<int64_t, int> socket_of_;
  std::vector<std::thread> threads_;
  std::thread thread_;
};

// Two servers, of which one is false in a way; the sums of all maps must not care.
void expect_sums_without(const std::function<FakeServer::Then(FakeServer::Frame)>& then,
                         const WaitLimits& limits, std::string_view said) {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{1, 1, 1}, {2, 1}, {1, 2}}) {
    const LeafSplit split = LeafSplit::search(7, 3);
    RunningServer good;
    FakeServer bad(sizes, split, then);
    const Served served{{bad.address(), good.address()}, limits};
    testing::expect_no_errors(run_served(sizes, split, served, [&](Group& group) {
      group.barrier("all have joined");
      for (int step = 0; step < 3; ++step) expect_tree_sum<float>(group, 4 * kCount);
      const ServedFigures figures = *group.served();
      EXPECT_EQ(figures.alive, 1);
      EXPECT_EQ(figures.fallbacks, 1) << "the others go through the server that is left";
      ASSERT_EQ(figures.lost.size(), 1U);
      EXPECT_NE(figures.lost[0].find(said), std::string::npos)
          << "rank " << group.rank() << ": " << figures.lost[0];
    }));
  }
}

TEST(ServedTransport, AServerThatDiesInTheMiddleOfASumChangesNoBit) {
  for (const int64_t last : {1, 2, 5})
    expect_sums_without(
        [last](FakeServer::Frame frame) {
          return frame.number >= last ? FakeServer::Then::kEnd : FakeServer::Then::kAnswer;
        },
        {milliseconds(5000), milliseconds(20000)}, "server 1 at 127.0.0.1");
}

TEST(ServedTransport, ARootThatOneHostHasIsPassedOn) {
  expect_sums_without(
      [](FakeServer::Frame frame) {
        return frame.number >= 2 ? FakeServer::Then::kAnswerRankZeroAlone : FakeServer::Then::kAnswer;
      },
      {milliseconds(5000), milliseconds(20000)}, "it closed the connection");
}

TEST(ServedTransport, AServerThatStallsIsNamedWithinTheDeadline) {
  expect_sums_without([](FakeServer::Frame) { return FakeServer::Then::kSilence; },
                      {milliseconds(200), milliseconds(800)}, "it has said nothing for");
}

TEST(ServedTransport, WithoutAnyServerLeftSumsGoDirectly) {
  const LeafSplit split = LeafSplit::search(7, 3);
  FakeServer bad({1, 1, 1}, split, [](FakeServer::Frame) { return FakeServer::Then::kEnd; });
  testing::expect_no_errors(run_served({1, 1, 1}, split, {{bad.address()}}, [&](Group& group) {
    group.barrier("all have joined");
    for (int step = 0; step < 3; ++step) expect_tree_sum<float>(group, kCount);
    EXPECT_EQ(group.served()->alive, 0);
  }));
}

// A worker that fails is named by the others, whatever they were waiting for.
TEST(ServedTransport, AWorkerThatLeavesIsNamed) {
  RunningServer server;
  const auto errors = run_served({1, 1, 1}, LeafSplit::search(4, 3), {{server.address()}}, [&](Group& group) {
    expect_tree_sum<float>(group, kCount);
    if (group.rank() == 2) return;
    expect_tree_sum<float>(group, kCount);
  });
  EXPECT_FALSE(errors[2]);
  for (const size_t rank : {0, 1}) {
    ASSERT_TRUE(errors[rank]);
    try {
      std::rethrow_exception(errors[rank]);
    } catch (const PeerError& error) {
      EXPECT_EQ(error.peer(), 2) << error.what();
    }
  }
}

// ---- strangers ----

Descriptor connect_as_stranger(const RunningServer& server) {
  return connect_to(server.address(), steady_clock::now() + milliseconds(5000));
}

bool is_closed(const Descriptor& socket) {
  std::array<char, 4096> buffer;
  while (wait_readable(socket, steady_clock::now() + milliseconds(5000))) {
    const ssize_t got = recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
  }
  return false;
}

TEST(ReductionServer, StrangersAreTurnedAwayAndDisturbNobody) {
  RunningServer server;
  testing::expect_no_errors(
      run_served({1, 1}, LeafSplit::search(4, 2), {{server.address()}}, [&](Group& group) {
        expect_tree_sum<float>(group, kCount);
        if (group.rank() == 0) {
          const Descriptor wrong = connect_as_stranger(server);
          try {
            greet(wrong, kReductionProtocol, "ffffffffffffffffffffffffffffffff", "worker-1",
                  steady_clock::now() + milliseconds(5000));
            ADD_FAILURE() << "a wrong token was taken";
          } catch (const CommError& error) {
            EXPECT_NE(std::string(error.what()).find("the token is another one"), std::string::npos)
                << error.what();
          }
          EXPECT_TRUE(is_closed(wrong));
          for (const std::string& said :
               {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100, '\xff'),
                encode(StoreMessage{MessageKind::kHello, {std::string(300, 'x'), "a", "b"}}),
                std::string("\x01")}) {
            const Descriptor stranger = connect_as_stranger(server);
            EXPECT_GT(send(stranger.get(), said.data(), said.size(), MSG_NOSIGNAL), 0);
            EXPECT_TRUE(is_closed(stranger)) << said;
          }
          EXPECT_TRUE(is_closed(connect_as_stranger(server))) << "silence";
        }
        expect_tree_sum<float>(group, kCount);
        EXPECT_EQ(group.served()->fallbacks, 0);
      }));
  EXPECT_GE(server.strangers(), 6);
}

TEST(ReductionServer, AnotherRunWithTheSameTokenIsRefused) {
  RunningServer server;
  const SessionTerms terms{.session = "run", .rank = 0, .ranks = 2, .host = 0, .leaves = 2, .ends = {1, 2}};
  const auto join = [&](SessionTerms as) {
    return ServerLink(0, server.address(), kToken, as, steady_clock::now() + milliseconds(5000)).alive();
  };
  const ServerLink first(0, server.address(), kToken, terms, steady_clock::now() + milliseconds(5000));
  SessionTerms other = terms;
  other.session = "another";
  const auto refused = [&](const SessionTerms& as, std::string_view why) {
    try {
      join(as);
      ADD_FAILURE() << "was let in";
    } catch (const CommError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  refused(other, "works for another run");
  refused(terms, "two processes have the same rank");
}

// Who knows the token and sends what no worker sends ends the session, and every worker is told.
TEST(ReductionServer, AnOversizeFrameEndsTheSession) {
  RunningServer server;
  SessionTerms terms{.session = "run", .rank = 0, .ranks = 2, .host = 0, .leaves = 2, .ends = {1, 2}};
  ServerLink honest(0, server.address(), kToken, terms, steady_clock::now() + milliseconds(5000));
  terms.rank = terms.host = 1;
  ServerLink other(0, server.address(), kToken, terms, steady_clock::now() + milliseconds(5000));
  FrameHeader header{.kind = FrameKind::kPartials, .partials = 1, .collective = 1, .elements = 1U << 30};
  header.payload = 0xffffffff;
  const HeaderBytes bytes = encode(header);
  EXPECT_GT(send(other.socket().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  while (honest.alive()) {
    ASSERT_TRUE(wait_readable(honest.socket(), steady_clock::now() + milliseconds(5000)));
    honest.read_some();
  }
  EXPECT_NE(honest.reason().find("rank 1"), std::string::npos) << honest.reason();
}

TEST(ReductionServer, MoreThanTheWindowIsRefused) {
  RunningServer server;
  SessionTerms terms{.session = "run", .rank = 0, .ranks = 2, .host = 0, .leaves = 2, .ends = {1, 2}};
  ServerLink link(0, server.address(), kToken, terms, steady_clock::now() + milliseconds(5000));
  std::vector<std::byte> frame;
  for (uint32_t chunk = 0; chunk < 20; ++chunk) {
    const HeaderBytes header = encode({.kind = FrameKind::kPartials,
                                       .partials = 1,
                                       .chunk = chunk,
                                       .collective = 1,
                                       .elements = 16,
                                       .payload = 64});
    frame.insert(frame.end(), header.begin(), header.end());
    frame.resize(frame.size() + 64);
  }
  EXPECT_GT(send(link.socket().get(), frame.data(), frame.size(), MSG_NOSIGNAL), 0);
  while (link.alive()) {
    ASSERT_TRUE(wait_readable(link.socket(), steady_clock::now() + milliseconds(5000)));
    link.read_some();
  }
}

}  // namespace
}  // namespace lockstep::reduction
