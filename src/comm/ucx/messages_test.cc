// Messages between processes over UCX on loopback.
#include <numeric>

#include "comm/ucx/ranks_testing.h"

namespace lockstep {
namespace {

using testing::on_ucx_ranks;
using ucx::UcxTransport;

std::vector<std::byte> pattern(size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<size_t>(seed));
  return data;
}

TEST(UcxMessages, CrossInBothDirectionsAtAnySize) {
  on_ucx_ranks(3, [](UcxTransport& transport) {
    const int next = (transport.rank() + 1) % 3;
    const int previous = (transport.rank() + 2) % 3;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{70000}, size_t{9'000'001}}) {
      const auto data = pattern(bytes, transport.rank());
      std::vector<std::byte> first(bytes);
      std::vector<std::byte> second(bytes);
      // Everybody sends first: nobody may block the others.
      const auto sent = transport.start_send(next, data);
      const auto sent_again = transport.start_send(next, data);
      const auto got = transport.start_receive(previous, first);
      const auto got_again = transport.start_receive(previous, second);
      transport.wait(*got_again);
      transport.wait(*got);
      transport.wait(*sent_again);
      transport.wait(*sent);
      EXPECT_EQ(first, pattern(bytes, previous));
      EXPECT_EQ(first, second);
    }
  });
}

TEST(UcxMessages, ArriveInOrderWhateverTheirSize) {
  on_ucx_ranks(2, [](UcxTransport& transport) {
    constexpr size_t kMessages = 60;
    const auto size_of_message = [](size_t i) { return i % 3 == 0 ? 300'000 + i : i * 11; };
    std::vector<std::vector<std::byte>> data;
    std::vector<std::unique_ptr<Message>> under_way;
    for (size_t i = 0; i < kMessages; ++i) {
      const bool sends = transport.rank() == 0;
      data.push_back(sends ? pattern(size_of_message(i), static_cast<int>(i))
                           : std::vector<std::byte>(size_of_message(i)));
      under_way.push_back(sends ? transport.start_send(1, data.back())
                                : transport.start_receive(0, data.back()));
    }
    for (size_t i = kMessages; i-- > 0;) transport.wait(*under_way[i]);
    for (size_t i = 0; i < kMessages; ++i)
      EXPECT_EQ(data[i], pattern(size_of_message(i), static_cast<int>(i)));
  });
}

TEST(UcxMessages, OfCollectivesDoNotMixWithTheCallers) {
  on_ucx_ranks(2, [](UcxTransport& transport) {
    const int other = 1 - transport.rank();
    MessagePort& inner = transport.collective_messages();
    const auto outer_data = pattern(500, 1);
    const auto inner_data = pattern(500, 2);
    std::vector<std::byte> outer_got(500);
    std::vector<std::byte> inner_got(500);
    // Each rank starts them in another order.
    std::unique_ptr<Message> outer_sent;
    if (transport.rank() == 0) outer_sent = transport.start_send(other, outer_data);
    const auto inner_sent = inner.start_send(other, inner_data);
    if (transport.rank() == 1) outer_sent = transport.start_send(other, outer_data);
    const auto inner_receive = inner.start_receive(other, inner_got);
    const auto outer_receive = transport.start_receive(other, outer_got);
    inner.wait(*inner_receive);
    transport.wait(*outer_receive);
    inner.wait(*inner_sent);
    transport.wait(*outer_sent);
    EXPECT_EQ(inner_got, inner_data);
    EXPECT_EQ(outer_got, outer_data);
  });
}

TEST(UcxMessages, TwoThreadsMayWaitAtOnce) {
  on_ucx_ranks(2, [](UcxTransport& transport) {
    const int other = 1 - transport.rank();
    const auto exchange = [other](MessagePort& port, int seed) {
      for (size_t turn = 0; turn < 50; ++turn) {
        const auto data = pattern(1 + turn * 997, seed + static_cast<int>(turn));
        std::vector<std::byte> got(data.size());
        const auto sent = port.start_send(other, data);
        const auto received = port.start_receive(other, got);
        port.wait(*received);
        port.wait(*sent);
        EXPECT_EQ(got, data);
      }
    };
    std::thread thread([&] { exchange(transport.collective_messages(), 3); });
    exchange(transport, 5);
    thread.join();
  });
}

TEST(UcxMessages, OfAnotherSizeAreRefused) {
  on_ucx_ranks(2, [](UcxTransport& transport) {
    std::vector<std::byte> data(transport.rank() == 0 ? 100 : 90);
    const std::string text = testing::peer_error(0, [&] {
      if (transport.rank() == 1) return transport.wait(*transport.start_receive(0, data));
      transport.wait(*transport.start_send(1, data));
      transport.wait(*transport.start_receive(1, data));
    });
    EXPECT_NE(text.find("rank 0 sends 100 bytes and rank 1 expects 90"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace lockstep
