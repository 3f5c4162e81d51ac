// MachineNoise: what a measurement shared its machine with. A pipeline that is slow and a machine that stood
// still look the same from inside, both as waits; the kernel knows which it was.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

struct MachineNoise {
  double all = 0;             // processor seconds that the machine spent on anything
  double own = 0;             // of these, on this process
  double stolen = 0;          // processor seconds that a hypervisor gave to others
  double delayed = 0;         // seconds that threads of this process could run and had no processor, summed
  int64_t storage_bytes = 0;  // that this process read and the system did not have in memory

  // What happened since an earlier look.
  MachineNoise operator-(const MachineNoise& earlier) const;
  // Processor seconds of other processes: the kernel counts in ticks, so a little may be none.
  double others() const;
  // What disturbed a measurement of so many seconds in which so many bytes were read: "" where nothing did.
  std::string sentence(double seconds, int64_t bytes_read) const;
};

// As of now. What the system does not tell is 0.
MachineNoise look_at_machine();

// Adds the first line of /proc/stat, of which a second has so many ticks.
void add_processor_line(std::string_view stat, double ticks, MachineNoise& noise);
// Of /proc/self/io.
int64_t storage_bytes_in(std::string_view io);
// Of /proc/self/task/ID/schedstat, in seconds.
double delayed_in(std::string_view schedstat);

// Nanoseconds in which what one processor wrote reaches another: some 50 where they share a cache, several
// times that where not. Blocks are decoded by one reader and used by all, so reading takes longer then; and a
// hypervisor that moves its processors about changes it from one second to the next. 0: there is one
// processor.
double nanoseconds_between_processors();

}  // namespace lockstep
