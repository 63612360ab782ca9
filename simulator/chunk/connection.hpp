// A connection: one lane of one hop, with its chunks in order: acknowledged, delivered, sent, waiting.
#pragma once

#include <cstdint>
#include <vector>

#include "chunk/event_queue.hpp"
#include "model/hops.hpp"

namespace simai {

// A chunk on one hop of its way. `time` is when it will be delivered; once delivered, when its acknowledgement comes.
struct Entry {
    int token = 0;
    int hop = 0;  // hops that the chunk has behind it
    Ps time = 0;
};

// First in, first out, with positions that never move: entry k stays k until it is acknowledged and leaves.
class EntryQueue {
  public:
    std::uint64_t begin() const { return begin_; }
    std::uint64_t end() const { return end_; }
    Entry& operator[](std::uint64_t k) { return slots_[k & mask_]; }
    const Entry& operator[](std::uint64_t k) const { return slots_[k & mask_]; }
    void push(const Entry& entry) {
        if (end_ - begin_ == slots_.size()) grow();
        slots_[end_++ & mask_] = entry;
    }
    void pop() { ++begin_; }
    void clear() { begin_ = end_; }

  private:
    void grow() {
        std::vector<Entry> larger(slots_.empty() ? 16 : 2 * slots_.size());
        const std::uint64_t mask = larger.size() - 1;
        for (std::uint64_t k = begin_; k < end_; ++k) larger[k & mask] = slots_[k & mask_];
        slots_ = std::move(larger);
        mask_ = mask;
    }
    std::vector<Entry> slots_;
    std::uint64_t mask_ = 0, begin_ = 0, end_ = 0;
};

struct Connection {
    int hop = 0;
    Lane lane;
    LanePath path;
    Ps latency = 0;
    bool up = true;
    bool exclusive = true;    // it may book its ports ahead of time
    std::uint32_t epoch = 0;  // deliveries announced before a break carry an older one
    EntryQueue queue;
    std::uint64_t delivered = 0;  // the next entry to be delivered
    std::uint64_t sent = 0;       // the next entry to be sent
    double tag = 0;               // virtual finish time of what it has sent, per unit of weight
    double assigned = 0;          // payload bytes given to this lane of its hop
    std::int64_t payload = 0;     // delivered bytes that no NIC counter has yet

    // Forgets what is acknowledged by `now`.
    void acknowledge(Ps now) {
        while (queue.begin() < delivered && queue[queue.begin()].time <= now) queue.pop();
    }
};

}  // namespace simai
