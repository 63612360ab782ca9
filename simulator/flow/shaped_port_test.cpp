#include "flow/shaped_port.hpp"

#include <doctest/doctest.h>

namespace simai {
namespace {

using doctest::Approx;

TEST_CASE("shaped port: without a bucket the capacity is the rate, times what is left of it") {
    ShapedPort port(100, 400, 0);
    CHECK(port.capacity() == 100);
    port.set_fraction(0.25);
    CHECK(port.capacity() == 25);
    CHECK(port.dry_in(1000) == kUnlimited);
    port.set_fraction(0);
    CHECK(port.capacity() == 0);
    CHECK(port.planning() == 100);  // what it will carry when it works again
}

TEST_CASE("shaped port: line rate until usage has drained the burst: burst / (usage - rate) seconds") {
    ShapedPort port(100, 400, 60);
    CHECK(port.capacity() == 400);
    CHECK(port.dry_in(400) == Approx(0.2));
    CHECK(port.dry_in(100) == kUnlimited);  // tokens come in as fast as they go
    port.advance(0.1, 400);
    CHECK(port.dry_in(400) == Approx(0.1));
    port.advance(0.2, 400);
    CHECK(port.capacity() == 100);
}

TEST_CASE("shaped port: a bucket refills at the rate while the port is idle, and never above its size") {
    ShapedPort port(100, 400, 60);
    port.advance(0.2, 400);
    port.advance(0.5, 0);  // 0.3 s at 100
    CHECK(port.capacity() == 400);
    CHECK(port.dry_in(400) == Approx(0.1));
    port.advance(100, 0);
    CHECK(port.dry_in(400) == Approx(0.2));
}

TEST_CASE("shaped port: tokens that trickle in under load do not bring the line rate back") {
    ShapedPort port(100, 400, 60);
    port.advance(0.2, 400);
    port.advance(1.2, 50);
    CHECK(port.capacity() == 100);
}

TEST_CASE("shaped port: at a fraction f the bucket drains at f (line - rate)") {
    ShapedPort port(100, 400, 60);
    port.set_fraction(0.5);
    CHECK(port.capacity() == 200);
    CHECK(port.dry_in(200) == Approx(0.4));
}

TEST_CASE("shaped port: a bucket is dry when its time has come, whatever the clock rounds off") {
    ShapedPort port(1e9, 1e10, 1e6);
    const double now = 1e9;  // a tick of the clock is 1e-7 s here, worth 1 kB
    port.advance(now, 0);
    port.run_dry(now + port.dry_in(1e10));
    CHECK(port.capacity() == 1e9);
    CHECK(port.dry_in(1e10) == kUnlimited);
}

}  // namespace
}  // namespace simai
