// The state of a chunk run. Split over two files: chunk_engine.cpp moves chunks, chunk_failover.cpp breaks and mends
// connections.
#pragma once

#include <string>
#include <vector>

#include "chunk/chunk_port.hpp"
#include "chunk/chunk_run.hpp"
#include "chunk/connection.hpp"
#include "chunk/event_queue.hpp"
#include "failover/failover.hpp"
#include "model/hops.hpp"
#include "model/pass_order.hpp"

namespace simai {

// A chunk on its way through a pass.
struct Token {
    std::int64_t bytes = 0;
    int pass = 0;
    int section = 0;
    int piece = 0;
    int position = 0;  // where on the route it is
    int hop = 0;       // hops it has behind it
};

class ChunkEngine {
  public:
    ChunkEngine(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                const std::vector<NicEvent>& events, const React& react, const ChunkOptions& options)
        : cluster_(cluster),
          schedule_(schedule),
          events_(events),
          react_(react),
          options_(options),
          ports_(cluster),
          hops_(cluster, schedule, binding),
          states_(cluster),
          order_(schedule, false) {}

    Outcome run();

  private:
    // Moving chunks.
    void set_up();
    void set_up_ports();
    int connect(int hop, const Lane& lane);
    void handle(const QueuedEvent& event);
    void release_ready();
    void start(int pass);
    void complete(int pass);
    void enqueue(int hop, const Entry& entry);
    void try_send(int connection);
    void dispatch(int port);
    void send(Connection& connection, int id, Ps at);
    void on_delivered(int connection);
    void advance(int token_id);
    Ps window_opens(const Connection& connection) const;
    void wake(int port, Ps at);
    double weight_of(const Connection& connection) const;

    // Breaking and mending connections.
    void on_nic_event(int id);
    void on_detected(int nic);
    void roll_back(int connection);
    void take_back(Connection& connection, std::uint64_t from);
    void unreserve(int connection);
    void stretch(int connection, double factor);
    void free_ports(const Connection& connection);
    void rebind(int hop);
    void retire(int connection, std::vector<Entry>& entries);
    void check_exclusive(int port);
    void flush(Connection& connection);
    void watch(int nic);
    double counter(int nic) const;
    std::string who_waits() const;

    void stop(Status status, std::string reason) {
        stopped_ = true;
        out_.status = status;
        out_.reason = std::move(reason);
    }
    // Times beyond the range of the clock stay at its end, which no run reaches.
    static Ps ps(double seconds) { return static_cast<Ps>(std::llround(std::min(seconds * kPsPerSecond, 9e18))); }
    Ps later(Ps time, double factor) const {
        return now_ + static_cast<Ps>(std::llround(static_cast<double>(time - now_) * factor));
    }
    double now_s() const { return static_cast<double>(now_) / kPsPerSecond; }
    Outcome finish();

    static constexpr Ps kUnknown = -1;

    const Cluster& cluster_;
    const Schedule& schedule_;
    const std::vector<NicEvent>& events_;
    const React& react_;
    const ChunkOptions& options_;
    Ports ports_;
    Hops hops_;
    NicStates states_;
    PassOrder order_;

    EventQueue queue_;
    Ps now_ = 0;
    bool stopped_ = false;
    std::vector<ChunkPort> port_;
    std::vector<Connection> connection_;
    std::vector<std::vector<int>> of_hop_;         // live connections of each hop
    std::vector<std::int64_t> hop_left_;           // chunks that still have to cross each hop
    std::vector<std::vector<double>> hop_weight_;  // per pass and position: its share where it competes
    std::vector<Token> token_;
    std::vector<std::int64_t> pass_left_;  // chunks of a pass that have not arrived
    std::vector<std::uint32_t> nic_version_;
    std::vector<std::vector<int>> triggers_;  // per NIC: its events that wait for a byte count, soonest last
    bool watching_ = false;
    std::vector<std::int64_t> in_payload_, out_payload_;  // per NIC
    std::vector<double> in_wire_, out_wire_;
    Outcome out_;
};

}  // namespace simai
