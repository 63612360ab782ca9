// Broken files: whatever the bytes are, reading ends, stays within them, and says what is wrong.
#include <doctest/doctest.h>

#include <random>

#include "testing/raw_trace.hpp"
#include "trace/critical_path.hpp"
#include "trace/fingerprint.hpp"
#include "trace/json.hpp"
#include "trace/reader.hpp"

namespace simai {
namespace {

using namespace testing;

std::string sample() {
    std::string data = metadata();
    for (std::uint64_t id = 1; id < 40; id += 4) {
        data += id == 1 ? comp(id, 3) : comp(id, 3, {id - 1});
        data += coll(id + 1, 0, 1 << 20, "12", {id});
        data += send(id + 2, 3, 64, static_cast<std::int64_t>(id), {id + 1, id});
        data += node(id + 3, 7, {id + 2},
                     integer("comm_type", 2) + attribute("comm_size", number(13, 8)) + number(7, 3) +
                         bytes(8, bytes(2, "[[4, 4], [8]]") + bytes(3, "['Tensor(float)']")) +
                         attribute("involved_dim", bytes(28, bytes(1, "\x01"))) + text("note", "\xC3\xA9"));
    }
    return data;
}

class Mutator {
  public:
    explicit Mutator(std::uint32_t seed) : random_(seed) {}

    std::string broken(std::string data) {
        for (std::size_t times = 1 + draw(4); times > 0; --times) mutate(data);
        return data;
    }

  private:
    std::size_t draw(std::size_t below) { return below == 0 ? 0 : random_() % below; }

    void mutate(std::string& data) {
        const std::size_t at = draw(data.size());
        switch (draw(7)) {
            case 0:
                if (!data.empty()) data[at] = static_cast<char>(data[at] ^ (1 << draw(8)));
                break;
            case 1:
                data.resize(at);
                break;
            case 2:
                data.insert(at, 1 + draw(9), static_cast<char>(draw(256)));
                break;
            case 3:
                data.erase(at, 1 + draw(9));
                break;
            case 4:  // a piece of the file somewhere else
                data.insert(at, data.substr(draw(data.size()), draw(200)));
                break;
            case 5:  // a number as large as numbers get
                data.insert(at, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
                break;
            default:
                if (!data.empty()) data[at] = static_cast<char>(draw(256));
        }
    }

    std::mt19937 random_;
};

// Everything that the package does with a file.
bool survives(const std::string& data) {
    const Reading read = read_trace(view(data));
    const Fingerprint print = fingerprint(read.trace);
    CHECK(print.collectives.size() == read.trace.groups.size());
    const bool sound = read.findings.errors() == 0;
    if (sound) {
        CHECK(read.trace.dep_offsets.size() == read.trace.nodes.size() + 1);
        CHECK(critical_path(read.trace).seconds >= 0);
    }
    try {
        for (std::size_t at = metadata_json(view(data)).next; at < data.size();)
            at = nodes_json(view(data), at, 1000).next;
    } catch (const WireError& error) {  // also of parts that the trace does not need
        CHECK(error.offset() <= data.size());
    }
    return sound;
}

TEST_CASE("fuzz: the sample is sound") { CHECK(survives(sample())); }

TEST_CASE("fuzz: 20,000 mutated files") {
    const std::string good = sample();
    int sound = 0;
    for (std::uint32_t seed = 0; seed < 20'000; ++seed) {
        CAPTURE(seed);
        sound += survives(Mutator(seed).broken(good)) ? 1 : 0;
    }
    CHECK(sound > 200);  // mutations of names, sizes and unknown attributes
    CHECK(sound < 15'000);
}

TEST_CASE("fuzz: every truncation, and every byte set to 0x00, 0x7F, 0x80 and 0xFF") {
    const std::string good = sample();
    for (std::size_t at = 0; at < good.size(); ++at) {
        survives(good.substr(0, at));
        for (const char byte : {'\x00', '\x7F', '\x80', '\xFF'}) {
            std::string data = good;
            data[at] = byte;
            survives(data);
        }
    }
}

TEST_CASE("fuzz: random bytes") {
    std::mt19937 random(1);
    for (int i = 0; i < 5'000; ++i) {
        std::string data(random() % 64, '\0');
        for (char& byte : data) byte = static_cast<char>(random());
        survives(data);
        survives(metadata() + data);
    }
}

TEST_CASE("fuzz: a large file of nothing costs nothing") {
    const Reading read = read_trace(view(std::string(50'000'000, '\0')));
    CHECK(read.findings.errors() == 1);
    CHECK(read.trace.nodes.capacity() == 0);
}

}  // namespace
}  // namespace simai
