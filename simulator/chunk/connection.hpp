// A connection: one lane of one hop, with its chunks: acknowledged, delivered, sent, waiting.
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
    void cut(std::uint64_t end) { end_ = end; }
    bool empty() const { return begin_ == end_; }

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

// Chunks that wait to be sent. Those of an earlier pass go first, whenever they come: a channel works its passes off in
// order, and what a later one has ready fills the gaps.
class Backlog {
  public:
    bool empty() const { return lists_.empty(); }
    const Entry& front() const { return lists_.front().entries[lists_.front().entries.begin()]; }
    void push(int pass, const Entry& entry) { list(pass).push(entry); }
    void pop() {
        lists_.front().entries.pop();
        if (lists_.front().entries.empty()) lists_.erase(lists_.begin());
    }
    // Puts entries that were taken back before all others of their pass; `entries` are of one pass, in order.
    void push_front(int pass, const std::vector<Entry>& entries) {
        EntryQueue merged;
        for (const Entry& entry : entries) merged.push(entry);
        EntryQueue& old = list(pass);
        for (std::uint64_t k = old.begin(); k < old.end(); ++k) merged.push(old[k]);
        old = std::move(merged);
    }
    template <typename Visit>
    void each(Visit visit) const {
        for (const List& one : lists_)
            for (std::uint64_t k = one.entries.begin(); k < one.entries.end(); ++k) visit(one.entries[k]);
    }
    void clear() { lists_.clear(); }

  private:
    struct List {
        int pass = 0;
        EntryQueue entries;
    };
    EntryQueue& list(int pass) {
        std::size_t i = lists_.size();
        while (i > 0 && lists_[i - 1].pass > pass) --i;
        if (i > 0 && lists_[i - 1].pass == pass) return lists_[i - 1].entries;
        return lists_.insert(lists_.begin() + static_cast<std::ptrdiff_t>(i), List{pass, {}})->entries;
    }
    std::vector<List> lists_;
};

struct Connection {
    int hop = 0;
    Lane lane;
    LanePath path;
    Ps latency = 0;
    bool up = true;
    bool exclusive = true;        // it may book its ports ahead of time
    std::uint32_t epoch = 0;      // deliveries announced before a break carry an older one
    EntryQueue flight;            // sent, in order: acknowledged ones leave at the front
    std::uint64_t delivered = 0;  // the next of them to be delivered
    Backlog waiting;
    double tag = 0;            // virtual finish time of what it has sent, per unit of weight
    double assigned = 0;       // payload bytes given to this lane of its hop
    std::int64_t payload = 0;  // delivered bytes that no NIC counter has yet

    // Forgets what is acknowledged by `now`.
    void acknowledge(Ps now) {
        while (flight.begin() < delivered && flight[flight.begin()].time <= now) flight.pop();
    }
};

}  // namespace simai
