#include "bindings/log/lines.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/handed_over.hpp"
#include "bindings/log/json.hpp"

namespace armlet {

namespace {

constexpr std::size_t block = std::size_t{1} << 16;    // bytes that wait for the system if lines go by blocks
constexpr std::size_t longest = std::size_t{1} << 30;  // bytes of a line: a batch of rows is one event

long long microseconds_now() {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

// A LogError that says why the system refused.
[[noreturn]] void raise_log_error(nb::python_error& error, const std::string& what, const std::string& then) {
    const std::string text = what + ": " + nb::str(error.value().attr("strerror")).c_str() + "; " + then;
    nb::raise_from(error, handed_over(Part::errors).attr("LogError").ptr(), "%s", text.c_str());
}

}  // namespace

Lines::Lines(std::string name, int fd, const std::string& flush)
    : name_(std::move(name)),
      fd_(fd),
      by_block_(flush == "block"),
      to_disk_(flush == "disk"),
      os_(nb::module_::import_("os")) {}

void Lines::check_open() const {
    if (refusal) fail("LogError", *refusal);
    if (is_busy_) fail("BusyError", name_ + " is being written by this very thread; write to it after that");
}

void Lines::follow(long long seq, std::uint32_t crc, std::size_t size) {
    seq_ = seq, crc_ = crc, base_ = size_ = size, has_stray_ = false;
    text_.clear();
}

// ---- the file

void Lines::cut() {
    os_.attr("ftruncate")(fd_, size_);
    has_stray_ = false;
}

// No half of a line stays: what follows an error is cut off, now or before the next one.
void Lines::put_all() {
    try {
        if (has_stray_) cut();
        const std::size_t end = base_ + text_.size();
        for (std::size_t done = size_; done < end;) {
            has_stray_ = true;
            const nb::object rest = nb::steal(PyMemoryView_FromMemory(text_.data() + (done - base_),
                                                                      static_cast<Py_ssize_t>(end - done), PyBUF_READ));
            if (!rest.is_valid()) throw nb::python_error();
            done += nb::cast<std::size_t>(os_.attr("write")(fd_, rest));
        }
        size_ = end, has_stray_ = false;
    } catch (nb::python_error& error) {
        try {
            if (has_stray_) cut();
        } catch (nb::python_error&) {
        }
        if (!error.matches(PyExc_OSError)) throw;
        raise_log_error(error, name_ + " cannot be written", "nothing was logged");
    }
}

void Lines::write() {
    check_open();
    if (n_waiting() == 0 && !has_stray_) return;
    struct Busy {
        bool& flag;
        ~Busy() { flag = false; }
    } busy{is_busy_ = true};
    put_all();
}

// After a failure the system may have dropped the pages: a later success would prove nothing.
void Lines::sync() {
    if (refusal) fail("LogError", *refusal);
    try {
        os_.attr("fsync")(fd_);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_OSError)) throw;
        refusal = name_ + " did not reach the disk earlier; open it again";
        raise_log_error(error, name_ + " did not reach the disk", "open it again");
    }
}

nb::bytes Lines::since(std::size_t place) const {
    return place == base_ ? nb::bytes(text_.data(), size_ - base_) : nb::bytes("", 0);
}

bool Lines::drop(std::size_t place, std::size_t n, nb::handle values) {
    check_open();
    if (place != base_ || n > size_ - base_) return false;
    set_values(values);
    text_.erase(0, n);
    base_ += n;
    return true;
}

bool Lines::put(long long seq, nb::bytes line, std::uint32_t crc, nb::handle values) {
    if (seq != seq_ || base_ != size_ || n_waiting() > 0) return false;
    {
        Entry entry(*this);
        entry.add(line, crc);
        entry.write_through();
        set_values(values);
        entry.keep();
        text_.clear();
        base_ = size_;
    }
    settle();
    return true;
}

// ---- an entry

Lines::Entry::Entry(Lines& lines) : lines_(lines) {
    lines.check_open();
    if (lines.n_waiting() >= block || lines.has_stray_) lines.write();
    seq_ = lines.seq_, crc_ = lines.crc_, size_ = lines.size_, end_ = lines.base_ + lines.text_.size();
    lines.is_busy_ = true;
}

Lines::Entry::~Entry() {
    lines_.is_busy_ = false;
    if (is_kept_) return;
    lines_.seq_ = seq_, lines_.crc_ = crc_;
    lines_.text_.resize(end_ - lines_.base_);
    if (lines_.size_ == size_) return;
    lines_.size_ = size_, lines_.has_stray_ = true;
    try {
        lines_.cut();
    } catch (nb::python_error&) {  // before the next one, then
    }
}

void Lines::Entry::add(const char* kind, nb::dict fields) {
    const std::size_t before = lines_.text_.size();
    lines_.crc_ = write_line(lines_.text_, lines_.seq_, kind, microseconds_now(), fields, lines_.crc_);
    ++lines_.seq_;
    if (lines_.text_.size() - before > longest)
        fail("LogError", lines_.name_ + " takes no event of more than 1,073,741,824 bytes; give fewer rows at a time");
}

void Lines::Entry::add(nb::bytes line, std::uint32_t crc) {
    lines_.text_.append(line.c_str(), line.size());
    lines_.crc_ = crc, ++lines_.seq_;
}

void Lines::Entry::write() {
    if (!lines_.by_block_) lines_.put_all();
}

void Lines::Entry::write_through() { lines_.put_all(); }

// ---- what Python calls

void check_values(nb::handle values) {
    for (nb::handle each : values)
        if (nb::len(each) > 3 && !nb::getattr(each[0], nb::str(each[1])).equal(each[3]))
            fail("BusyError",
                 "the bandit was changed in the middle of this call, as by a signal handler or a finaliser in this "
                 "thread; this call has changed nothing, call again");
}

void set_values(nb::handle values) {
    for (nb::handle each : values) {
        const nb::object owner = each[0], name = each[1], value = each[2];
        if (PyObject_GenericSetAttr(owner.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
    }
}

namespace {

void make(nb::handle call, nb::handle args, nb::handle values) {
    if (!call.is_none() && !nb::steal(PyObject_Call(call.ptr(), args.ptr(), nullptr)).is_valid())
        throw nb::python_error();
    set_values(values);
}

// One change and its record: both, or neither.
void commit(Lines* lines, nb::list events, nb::tuple values, nb::handle call, nb::tuple args) {
    check_values(values);
    if (!lines) return make(call, args, values);
    {
        Lines::Entry entry(*lines);
        for (nb::handle event : events) {
            const nb::str kind = nb::str(event[0]);
            entry.add(kind.c_str(), nb::cast<nb::dict>(event[1]));
        }
        entry.write();
        make(call, args, values);
        entry.keep();
    }
    lines->settle();
}

}  // namespace

void bind_lines(nb::module_& m) {
    nb::class_<Lines>(m, "Lines", nb::is_final(), "The lines of a log: those in its file, and those that wait for it.")
        .def(nb::init<std::string, int, const std::string&>(), nb::arg("name"), nb::arg("fd"), nb::arg("flush"))
        .def_prop_ro("seq", &Lines::seq, "The number of the next event.")
        .def_prop_ro("crc", &Lines::crc, "The check value that it carries on.")
        .def_prop_ro("size", &Lines::size, "Bytes in the file, all of whole lines.")
        .def_prop_ro("n_waiting", &Lines::n_waiting, "Bytes that wait.")
        .def_rw("due", &Lines::due, "The number of the event at which a checkpoint is.")
        .def_rw("refusal", &Lines::refusal, nb::arg("value").none(), "Why nothing more is taken, once that is so.")
        .def("is_due", &Lines::is_due, nb::arg("is_decision"), "Whether a checkpoint, or much to seal, is due.")
        .def("follow", &Lines::follow, nb::arg("seq"), nb::arg("crc"), nb::arg("size"),
             "Goes on after the lines of a file.")
        .def("write", &Lines::write, "Passes all that waits to the system; what cannot be written goes on waiting.")
        .def("sync", &Lines::sync, "What was written is on the disk.")
        .def("since", &Lines::since, nb::arg("place"),
             "What was written from this place in the file on; nothing if that was dropped.")
        .def("drop", &Lines::drop, nb::arg("place"), nb::arg("n"), nb::arg("values"),
             nb::sig("def drop(self, place: int, n: int, values: tuple[tuple[object, str, object], ...]) -> bool"),
             "Lets go of n bytes from this place on, and sets attributes; False if that was done meanwhile.")
        .def("put", &Lines::put, nb::arg("seq"), nb::arg("line"), nb::arg("crc"), nb::arg("values"),
             nb::sig("def put(self, seq: int, line: bytes, crc: int, values: tuple[tuple[object, str, object], ...]) "
                     "-> bool"),
             "Writes a line that was made as event `seq`, when all before it were dropped; drops it too, and sets "
             "attributes. False if others came before it.");
    m.def(
        "commit", &commit, nb::arg("lines").none(), nb::arg("events"), nb::arg("values"),
        nb::arg("call").none() = nb::none(), nb::arg("args") = nb::tuple(),
        nb::sig("def commit(lines: Lines | None, events: list[tuple[str, dict[str, Any]]], values: "
                "tuple[tuple[object, str, object] | tuple[object, str, object, object], ...], call: "
                "collections.abc.Callable[..., object] | None = None, "
                "args: tuple[Any, ...] = ()) -> None"),
        "Records events, calls a builtin function and sets attributes, if those of which a fourth entry says what they "
        "are still are that: all of it or nothing, whatever interrupts.");
}

}  // namespace armlet
