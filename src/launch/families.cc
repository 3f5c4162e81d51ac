#include "launch/families.h"

#include "base/error.h"

namespace lockstep {

void place_master(WorkerPlace& placement, const Variables& variables, const std::string& known) {
  if (const auto port = find_integer(variables, "MASTER_PORT", 1, 65535)) placement.master_port = *port;
  if (const auto address = find_variable(variables, "MASTER_ADDR"))
    placement.master_addr = *address;
  else if (placement.all_on_one_host())
    placement.master_addr = "127.0.0.1";
  else if (!known.empty())
    placement.master_addr = known;
  else
    throw UserError(
        "{}, {} of them on this host, but nothing says where worker 0 is; set MASTER_ADDR to its host's name "
        "or "
        "address on all of them",
        describe(placement), placement.local_size);
}

void place_at_loopback(WorkerPlace& placement, const Variables& variables) {
  const auto address = find_variable(variables, "MASTER_ADDR");
  if (!address || !(address->starts_with("127.") || *address == "localhost" || *address == "::1")) return;
  placement.local_rank = placement.rank;
  placement.local_size = placement.size;
}

int64_t port_of_job(std::string_view job) {
  // FNV-1a. Below 32768, where the ports begin that the kernel gives to outgoing connections.
  uint64_t hash = 14695981039346656037u;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return 20000 + static_cast<int64_t>(hash % 10000);
}

}  // namespace lockstep
