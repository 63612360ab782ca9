// Protocol-buffer wire format: reading the fields of a message, whatever its bytes are.
//
// A field is a key, number * 8 + wire type, and a value: a varint (seven bits a byte, the lowest first, the high bit
// set on all but the last), four or eight bytes, or a length and that many bytes. Source: protobuf.dev, "Encoding".
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace simai {

using Bytes = std::span<const std::uint8_t>;

// The bytes are no protocol buffer, or end too early.
class WireError : public std::runtime_error {
  public:
    WireError(const std::string& reason, std::size_t offset) : std::runtime_error(reason), offset_(offset) {}
    std::size_t offset() const { return offset_; }  // byte of the file at which reading stopped

  private:
    std::size_t offset_;
};

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// `value` is a varint's or a fixed one's bits; `bytes` what a field with a length holds.
struct WireField {
    std::uint32_t number = 0;
    WireType type = WireType::kVarint;
    std::uint64_t value = 0;
    Bytes bytes;

    std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Walks over a part of a file; every step moves ahead by a byte at least, or throws WireError.
class WireReader {
  public:
    explicit WireReader(Bytes file) : WireReader(file.data(), file) {}
    // A part of the file that begins at `file`.
    WireReader(const std::uint8_t* file, Bytes part) : file_(file), at_(part.data()), end_(part.data() + part.size()) {}

    bool done() const { return at_ == end_; }
    std::size_t offset() const { return static_cast<std::size_t>(at_ - file_); }
    WireReader within(const WireField& field) const { return {file_, field.bytes}; }

    std::uint64_t varint() {
        if (at_ != end_ && *at_ < 0x80) return *at_++;
        return long_varint();
    }

    template <typename T>
    T fixed() {
        T value;
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
        static_assert(std::endian::native == std::endian::little);
        return value;
    }

    // A length and the bytes behind it: a message of a file, or the value of a field.
    Bytes block() {
        const std::uint64_t size = varint();
        return take(size);
    }

    WireField field() {
        const std::uint8_t* start = at_;
        const std::uint64_t key = varint();
        WireField found;
        found.number = static_cast<std::uint32_t>(key >> 3);
        found.type = static_cast<WireType>(key & 7);
        if (found.number == 0 || key >> 32 != 0) fail("a field with number " + std::to_string(key >> 3), start);
        switch (found.type) {
            case WireType::kVarint:
                found.value = varint();
                break;
            case WireType::kFixed64:
                found.value = fixed<std::uint64_t>();
                break;
            case WireType::kFixed32:
                found.value = fixed<std::uint32_t>();
                break;
            case WireType::kLength:
                found.bytes = block();
                break;
            default:
                fail("a field of wire type " + std::to_string(key & 7), start);
        }
        return found;
    }

  private:
    [[noreturn]] void fail(const std::string& reason, const std::uint8_t* where) const {
        throw WireError(reason, static_cast<std::size_t>(where - file_));
    }

    Bytes take(std::uint64_t size) {
        const auto left = static_cast<std::size_t>(end_ - at_);
        if (size > left)
            fail("it wants " + std::to_string(size) + " bytes where " + std::to_string(left) + " are left", at_);
        const Bytes found{at_, static_cast<std::size_t>(size)};
        at_ += size;
        return found;
    }

    std::uint64_t long_varint() {
        const std::uint8_t* start = at_;
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            if (at_ == end_) fail("it ends within a number", start);
            const std::uint8_t byte = *at_++;
            value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        fail("a number of more than ten bytes", start);
    }

    const std::uint8_t* file_;
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

}  // namespace simai
