// The lines of a log that is being written: those in its file, and those that wait for it.
//
// No Python code runs between the beginning of an entry and its end, so that no signal handler can come between a
// change and its record: the system is called by builtin functions of Python's module os, which hold off handlers.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>

namespace armlet {

namespace nb = nanobind;

class Lines {
  public:
    // `flush` is "block", "line" or "disk"; the name is for errors.
    Lines(std::string name, int fd, const std::string& flush);

    // Some lines, and the change that they record: if `keep` is not reached, they are taken back.
    class Entry {
      public:
        explicit Entry(Lines& lines);
        ~Entry();
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;

        void add(const char* kind, nb::dict fields);  // happens now
        void add(nb::bytes line, std::uint32_t crc);  // as it is
        void write();                                 // they are with the system from here on, unless by block
        void write_through();                         // in any case
        void keep() noexcept { is_kept_ = true; }

      private:
        Lines& lines_;
        long long seq_;
        std::uint32_t crc_;
        std::size_t end_, size_;
        bool is_kept_ = false;
    };

    // Goes on after event seq - 1, whose check value is `crc`, in a file of `size` bytes.
    void follow(long long seq, std::uint32_t crc, std::size_t size);
    void write();  // all that waits; what cannot be written goes on waiting
    void sync();   // what was written is on the disk
    // What follows a change that was made: with flush="disk" it is on the disk before the call returns.
    void settle() { to_disk_ ? sync() : void(); }

    // What was written from this place in the file on, which is kept until `drop`; nothing if that was dropped.
    nb::bytes since(std::size_t place) const;
    // Lets go of so many bytes from this place on, and sets attributes; false if somebody, such as a signal handler,
    // has done so meanwhile.
    bool drop(std::size_t place, std::size_t n, nb::handle values);
    // Writes a line that was made as event `seq`, when all before it were dropped; drops it too, and sets attributes.
    // False if others came before it.
    bool put(long long seq, nb::bytes line, std::uint32_t crc, nb::handle values);

    long long seq() const { return seq_; }
    std::uint32_t crc() const { return crc_; }
    std::size_t size() const { return size_; }  // of the file
    std::size_t n_waiting() const { return base_ + text_.size() - size_; }
    // There is something for its owner to do: so many events, or so much to seal.
    bool is_due(bool is_decision) const { return (is_decision && seq_ >= due) || size_ - base_ >= most_kept; }

    long long due = 0;                   // the event at which a checkpoint is
    std::optional<std::string> refusal;  // why nothing more is taken, once that is so

  private:
    static constexpr std::size_t most_kept = std::size_t{1} << 20;

    void check_open() const;
    void put_all();
    void cut();

    std::string name_;
    int fd_;
    bool by_block_, to_disk_;
    nb::object os_;
    long long seq_ = 0;
    std::uint32_t crc_ = 0;
    std::string text_;        // from `base_` on
    std::size_t base_ = 0;    // a place in the file
    std::size_t size_ = 0;    // bytes that were written, all of whole lines
    bool has_stray_ = false;  // the file may have bytes after these
    bool is_busy_ = false;    // in the middle of an entry
};

// Sets attributes as `object.__setattr__` does, each given as its owner, its name and its value.
void set_values(nb::handle values);
// Refuses values of which a fourth entry says what the attribute still is, unless it is.
void check_values(nb::handle values);

}  // namespace armlet
