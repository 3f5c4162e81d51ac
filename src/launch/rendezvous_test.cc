#include "launch/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{20000};

int64_t free_port() { return bound_port(listen_on({"127.0.0.1", 0})); }

WorkerPlace placement(int64_t rank, int64_t size, int64_t port) {
  WorkerPlace placement;
  placement.rank = placement.local_rank = rank;
  placement.size = placement.local_size = size;
  placement.master_port = port;
  return placement;
}

void join_all(int64_t size, int64_t port, const Variables& variables) {
  std::vector<std::thread> threads;
  // Worker 0 last: the others wait for it.
  for (int64_t rank = size - 1; rank >= 0; --rank)
    threads.emplace_back([&, rank] {
      Rendezvous rendezvous(placement(rank, size, port), variables, kLong);
      const auto all = rendezvous.join({{{"version", "1"}}, {{"rank", std::to_string(rank)}}});
      ASSERT_EQ(all.size(), static_cast<size_t>(size));
      EXPECT_EQ(all.back().own.at("rank"), std::to_string(size - 1));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, WorkersOfOneHostShareATokenByAPrivateFile) {
  TestFolder folder;
  const Variables variables = {{"XDG_RUNTIME_DIR", folder.path()}};
  const int64_t port = free_port();
  // A token that an earlier run left is not believed for long.
  RunTokenFile(variables, port).write("a token from before");
  struct stat status {};
  ASSERT_EQ(stat(folder.path(fmt::format("lockstep/token-{}", port)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  join_all(4, port, variables);
  EXPECT_EQ(RunTokenFile(variables, port).read(), "");
}

TEST(Rendezvous, TheTokenOfTheEnvironmentIsUsed) {
  join_all(3, free_port(), {{"LOCKSTEP_TOKEN", "0123456789abcdef"}});
}

TEST(Rendezvous, OurOwnWorkersAreToldWhereTheStoreIs) {
  StoreOptions options;
  options.token = random_token();
  const StoreServer server(options);
  join_all(3, 1, {{"LOCKSTEP_STORE", to_string(server.address())}, {"LOCKSTEP_TOKEN", options.token}});
}

bool answers(const std::string& host, int64_t port) {
  try {
    connect_to({host, port}, std::chrono::steady_clock::now() + kLong);
    return true;
  } catch (const CommError&) {
    return false;
  }
}

TEST(Rendezvous, TheStoreListensOnTheMastersAddressAlone) {
  EXPECT_EQ(listen_address({"10.1.2.3", 7}, true, {}).host, "127.0.0.1");
  EXPECT_EQ(listen_address({"10.1.2.3", 7}, false, {}).host, "10.1.2.3");
  EXPECT_EQ(listen_address({"fd00::3", 7}, false, {}).host, "fd00::3");
  EXPECT_EQ(listen_address({"10.1.2.3", 7}, false, {{"LOCKSTEP_LISTEN", "0.0.0.0"}}).host, "0.0.0.0");
  // No other host reaches these: a name that stands for them here is known elsewhere by other addresses.
  EXPECT_EQ(listen_address({"127.0.1.1", 7}, false, {}).host, "0.0.0.0");
  EXPECT_EQ(listen_address({"::1", 7}, false, {}).host, "::");
}

TEST(Rendezvous, ItIsReachedThereAndNowhereElse) {
  const int64_t port = free_port();
  WorkerPlace first = placement(0, 1, port);
  first.local_size = 0;  // on several hosts
  first.master_addr = "127.0.0.2";
  const Rendezvous rendezvous(
      first, {{"LOCKSTEP_TOKEN", "0123456789abcdef"}, {"LOCKSTEP_LISTEN", "127.0.0.2"}}, kLong);
  EXPECT_TRUE(answers("127.0.0.2", port));
  EXPECT_FALSE(answers("127.0.0.1", port));
}

TEST(Rendezvous, SeveralHostsNeedAToken) {
  WorkerPlace far = placement(0, 2, 1);
  far.local_size = 1;
  EXPECT_THROW(Rendezvous(far, {}, kLong), UserError);
  EXPECT_THROW(Rendezvous(far, {{"LOCKSTEP_TOKEN", "short"}}, kLong), UserError);
}

}  // namespace
}  // namespace lockstep
