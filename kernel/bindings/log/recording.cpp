#include "bindings/log/recording.hpp"

#include <string_view>

namespace armlet {

Recording::Locked::Locked(const Recording& recording) : lock_(recording.holder_.attr("lock")) {
    lock_.attr("acquire")();  // lets go of the interpreter lock while it waits, and raises what a signal handler does
}

Recording::Locked::~Locked() {
    nb::object done = nb::steal(PyObject_CallMethod(lock_.ptr(), "release", nullptr));
    if (!done.is_valid()) PyErr_WriteUnraisable(lock_.ptr());
}

// ---- the record of a change

Recording::Record::Record(const Recording& recording)
    : recording_(recording), owner_(recording.holder_.attr("lines")), lines_(nullptr) {
    if (!owner_.is_none()) lines_ = &nb::cast<Lines&>(owner_);
    if (!lines_ && nb::cast<bool>(recording.holder_.attr("doubtful"))) recording.holder_.attr("reconcile")();
}

Recording::Record::~Record() {
    if (is_kept_ || !is_called_) return;
    if (PyObject_SetAttrString(recording_.holder_.ptr(), "doubtful", Py_True) != 0)
        PyErr_WriteUnraisable(recording_.holder_.ptr());
}

// A recorder that raises an Exception has refused; anything else, such as KeyboardInterrupt, says nothing.
template <typename... Args>
void Recording::Record::call(const char* method, Args&&... args) {
    is_called_ = true;
    try {
        recording_.recorder().attr(method)(std::forward<Args>(args)...);
    } catch (const nb::python_error& error) {
        is_called_ = !error.matches(PyExc_Exception);
        throw;
    }
}

void Recording::Record::add_all(const char* kind, const nb::list& many) {
    if (std::string_view(kind) != "decide" && std::string_view(kind) != "learn")  // the engine makes all of those
        recording_.recorder().attr("check")(kind, many);
    entry_.emplace(*lines_);
    for (nb::handle fields : many) entry_->add(kind, nb::borrow<nb::dict>(fields));
    entry_->write();
}

void Recording::Record::change(const char* kind, const nb::dict& fields) {
    if (!lines_) return call("on_event", kind, fields);
    nb::list one;
    one.append(fields);
    add_all(kind, one);
}

void Recording::Record::change(const char* kind, const nb::list& many) {
    lines_ ? add_all(kind, many) : call("on_events", kind, many);
}

void Recording::Record::decision(const nb::object& made, const nb::dict& fields) {
    is_decision_ = true;
    if (!lines_) return call("on_decision", made);
    entry_.emplace(*lines_);
    entry_->add("decide", fields);
    entry_->write();
}

void Recording::Record::decisions(const nb::object& made, const nb::list& many) {
    is_decision_ = true;
    lines_ ? add_all("decide", many) : call("on_decisions", made);
}

// The change is made: from here on nothing is taken back, whatever else is raised.
void Recording::Record::keep() {
    is_kept_ = true;
    if (!lines_) return;
    entry_->keep();
    entry_.reset();
    lines_->settle();
    if (lines_->is_due(is_decision_)) recording_.recorder().attr("seal_if_due")(is_decision_);
}

int Recording::traverse(visitproc visit, void* arg) const {
    Py_VISIT(holder_.ptr());
    return 0;
}

nb::list rows_to_list(const std::vector<double>& values, std::size_t dim) {
    nb::list out;
    for (auto row = values.begin(); row != values.end(); row += static_cast<std::ptrdiff_t>(dim))
        out.append(to_list(std::vector<double>(row, row + static_cast<std::ptrdiff_t>(dim))));
    return out;
}

}  // namespace armlet
