// The cluster in a box: hosts that look like hosts, and nothing that outlives them.
#include "hosts/host_box.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/test_folder.h"

namespace lockstep {
namespace {

class HostBoxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_hosts()) GTEST_SKIP() << *reason;
  }
  std::string logs() const { return folder_.path("logs"); }

  TestFolder folder_;
};

// Every process below inherits the writing end; when the last of them has gone, the reading end says so.
class LastOneOut {
 public:
  LastOneOut() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~LastOneOut() {
    close_own();
    ::close(ends_[0]);
  }
  LastOneOut(const LastOneOut&) = delete;
  LastOneOut& operator=(const LastOneOut&) = delete;

  void close_own() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string line() const {
    std::string text;
    char letter = 0;
    while (::read(ends_[0], &letter, 1) == 1 && letter != '\n') text += letter;
    return text;
  }
  bool all_gone() const {
    pollfd wait{ends_[0], POLLIN, 0};
    char rest = 0;
    return ::poll(&wait, 1, 20000) == 1 && ::read(ends_[0], &rest, 1) == 0;
  }
  std::string descriptor() const { return std::to_string(ends_[1]); }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST_F(HostBoxTest, HostsHaveNamesAddressesAndExitCodes) {
  HostBox box({.hosts = 3},
              {"sh", "-c", "echo $(hostname) {address} {master} of {hosts}; ip address show; exit {host}"},
              logs());
  const std::vector<Ended> hosts = box.wait();
  ASSERT_EQ(hosts.size(), 3U);
  for (int host = 0; host < 3; ++host) {
    const Ended& ended = hosts[static_cast<size_t>(host)];
    EXPECT_EQ(ended.code, host) << ended.err;
    const std::string address = fmt::format("10.77.0.{}", host + 1);
    EXPECT_TRUE(ended.out.starts_with(fmt::format("host{} {} 10.77.0.1 of 3\n", host, address))) << ended.out;
    EXPECT_NE(ended.out.find("inet " + address + "/24"), std::string::npos) << ended.out;
    EXPECT_NE(ended.out.find("inet 127.0.0.1/8"), std::string::npos) << ended.out;
  }
}

TEST_F(HostBoxTest, LinksAreShapedBothWays) {
  // The switch's side of the links is in the namespace of the init process.
  HostBox box({.hosts = 2, .rate = "200mbit"},
              {"sh", "-c", "tc qdisc show dev eth0; nsenter --target 1 --net tc qdisc show dev port{host}"},
              logs());
  for (const Ended& ended : box.wait()) {
    EXPECT_EQ(ended.code, 0) << ended.err;
    size_t shaped = 0;
    for (size_t at = 0; (at = ended.out.find("tbf", at)) != std::string::npos; ++at) ++shaped;
    EXPECT_EQ(shaped, 2U) << ended.out;
    EXPECT_NE(ended.out.find("rate 200Mbit"), std::string::npos) << ended.out;
  }
}

TEST_F(HostBoxTest, ARunningBoxCanBeEnteredAndItsLinksCut) {
  LastOneOut pipe;
  HostBox box({.hosts = 2}, {"sh", "-c", "echo {host} >&" + pipe.descriptor() + "; sleep 100"}, logs());
  pipe.close_own();
  pipe.line();
  EXPECT_EQ(box.at(1, {"sh", "-c", "test $(hostname) = host1 && ip link set eth0 down"}), 0);
  EXPECT_EQ(box.at(1, {"sh", "-c", "ip link show eth0 | grep -q 'state DOWN'"}), 0);
  EXPECT_EQ(box.at(0, {"sh", "-c", "ip link show eth0 | grep -q 'state DOWN'"}), 1);
}

TEST_F(HostBoxTest, NothingOutlivesIt) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    LastOneOut pipe;
    HostBox box({.hosts = 2},
                {"sh", "-c", "trap '' TERM INT; echo {host} >&" + pipe.descriptor() + "; sleep 100 & wait"},
                logs());
    pipe.close_own();
    pipe.line();
    pipe.line();
    box.process().send(signal);
    EXPECT_TRUE(pipe.all_gone()) << "after signal " << signal;
    box.wait();
  }
}

TEST_F(HostBoxTest, AWrongRateIsSaid) {
  HostBox box({.hosts = 2, .rate = "fast"}, {"true"}, logs());
  for (const Ended& ended : box.wait()) {
    EXPECT_EQ(ended.code, -1);
    EXPECT_NE(ended.err.find("fast"), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace lockstep
