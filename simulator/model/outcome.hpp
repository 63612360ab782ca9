// What goes into a run beside the schedule, and what comes out of it. Times in seconds, sizes in bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/schedule.hpp"

namespace simai {

// A NIC goes to `fraction` of its rate (0: down, 1: repaired) at a time, or when its counter of bytes on the
// wire, the larger of its two directions, reaches `at_bytes`.
struct NicEvent {
    int nic = 0;
    double fraction = 0;
    double time_s = 0;
    double at_bytes = -1;  // >= 0: by bytes, and time_s is not read
};

// What a strategy answers when connections have broken and both ends know.
struct Reaction {
    std::optional<Binding> rebind;     // rows that replace the lanes of the hops they name
    std::optional<std::string> abort;  // the reason; the collective ends
};

struct Broken {
    double time_s = 0;
    int nic = 0;
    std::vector<int> hops;
};

using React = std::function<Reaction(const Broken&)>;

enum class Status { kDone, kAborted, kPartitioned, kUnfinished };

struct LogEntry {
    double time_s = 0;
    std::string what;  // "down", "rate", "up", "detected", "migrated", "resumed"
    int nic = -1;
    double value = 0;  // the new fraction, or the number of hops
};

// Bytes of one NIC, on the wire and without headers.
struct NicCount {
    double out_wire = 0, in_wire = 0, out_payload = 0, in_payload = 0;
};

struct Outcome {
    Status status = Status::kDone;
    std::string reason;
    double elapsed_s = 0;
    std::vector<double> out_payload, in_payload, out_wire, in_wire;  // per NIC
    std::vector<double> pass_start_s, pass_end_s;                    // NaN: never
    std::vector<double> event_time_s;                                // per NicEvent, NaN: never came
    std::vector<LogEntry> log;
    std::int64_t steps = 0;  // events handled (rate solutions in a fluid run, chunk events otherwise)
};

}  // namespace simai
