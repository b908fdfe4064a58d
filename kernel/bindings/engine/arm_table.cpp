#include "bindings/engine/arm_table.hpp"

#include <algorithm>

#include "bindings/arrays.hpp"

namespace armlet {

namespace {

// Under the interpreter lock, so plain counters will do.
Word tables = 0, lives = 0;

std::string listed(const nb::list& labels) {
    constexpr std::size_t most = 20;
    const std::size_t n = nb::len(labels);
    if (n <= most) return quoted(labels);
    nb::object first = nb::steal(PyList_GetSlice(labels.ptr(), 0, most));
    std::string text = quoted(first);
    text.pop_back();
    return text + ", ...] (" + std::to_string(n) + " of them)";
}

}  // namespace

nb::object key_of(nb::handle label) {
    PyObject* given = label.ptr();
    if (PyUnicode_CheckExact(given) || PyLong_CheckExact(given)) return nb::borrow(label);
    PyObject* key = nullptr;
    if (PyUnicode_Check(given))
        key = PyUnicode_FromObject(given);
    else if ((PyLong_Check(given) && !PyBool_Check(given)) || PyObject_TypeCheck(given, numpy_integer))
        key = PyNumber_Index(given);
    if (key) return nb::steal(key);
    PyErr_Clear();
    fail(PyExc_TypeError,
         "an arm is named " + quoted(label) + ", a " + text(label.type().attr("__name__")) + "; use a str or an int");
}

Keys keys_of(nb::handle eligible) {
    if (eligible.is_none()) return std::nullopt;
    if (PyUnicode_Check(eligible.ptr()))
        fail(PyExc_TypeError, "eligible is the string " + quoted(eligible) + "; give a list of labels such as [" +
                                  quoted(eligible) + "]");
    if (!PySequence_Check(eligible.ptr()) && !nb::hasattr(eligible, "__iter__") && !PyIter_Check(eligible.ptr()))
        fail(PyExc_TypeError, "eligible is " + quoted(eligible) + "; give a list of labels");
    nb::list given = nb::steal<nb::list>(PySequence_List(eligible.ptr()));
    if (!given.is_valid()) throw nb::python_error();
    std::vector<nb::object> keys;
    for (nb::handle label : given) keys.push_back(key_of(label));
    return keys;
}

Wanted wanted_of(nb::handle eligible) {
    Wanted out;
    if (eligible.is_none()) return out;
    if (is_plain(eligible, NPY_BOOL, 1)) {
        const auto* array = reinterpret_cast<PyArrayObject*>(eligible.ptr());
        const auto n = static_cast<std::size_t>(PyArray_DIM(array, 0));
        const bool* flags = booleans(eligible, "eligible", n);
        out.mask.emplace(flags, flags + n);
    } else if (nb::isinstance<ArmSet>(eligible)) {
        out.owner = nb::borrow(eligible);
        out.set = &nb::cast<const ArmSet&>(eligible);
    } else {
        out.keys = keys_of(eligible);
    }
    return out;
}

ArmTable::ArmTable(const nb::list& labels)
    : labels_(nb::steal<nb::list>(PySequence_List(labels.ptr()))), is_active_(nb::len(labels), 1) {
    for (std::size_t arm = 0; arm < size(); ++arm) lives_.push_back(++lives);
    id_ = ++tables;
    index();
}

void ArmTable::index() {
    index_ = nb::dict();
    active_.clear();
    std::uint32_t arm = 0;
    for (nb::handle label : labels_) {
        index_[key_of(label)] = arm;
        if (is_active_[arm]) active_.push_back(arm);
        ++arm;
    }
}

nb::list ArmTable::labels() const { return nb::steal<nb::list>(PySequence_List(labels_.ptr())); }

nb::list ArmTable::retired() const {
    nb::list out;
    for (std::size_t arm = 0; arm < size(); ++arm)
        if (!is_active(arm)) out.append(label(arm));
    return out;
}

nb::object ArmTable::labels_of(Arms arms) const {
    nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(arms.size())));
    if (!out.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < arms.size(); ++i)
        PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), label(arms[i]).release().ptr());
    return out;
}

std::optional<std::uint32_t> ArmTable::find(const nb::object& key) const {
    PyObject* found = PyDict_GetItemWithError(index_.ptr(), key.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found ? std::optional(static_cast<std::uint32_t>(PyLong_AsUnsignedLong(found))) : std::nullopt;
}

std::uint32_t ArmTable::at(const nb::object& key) const {
    const auto arm = find(key);
    if (!arm) fail(PyExc_KeyError, "there is no arm " + quoted(key) + "; the arms are " + listed(labels_));
    return *arm;
}

ArmSet ArmTable::look_up(std::vector<nb::object> keys) const {
    std::vector<std::uint32_t> arms;
    for (const auto& key : keys) arms.push_back(at(key));
    std::sort(arms.begin(), arms.end());
    arms.erase(std::unique(arms.begin(), arms.end()), arms.end());
    return {id_, std::move(arms), std::move(keys)};
}

std::vector<std::uint32_t> ArmTable::playable(const Wanted& eligible) const {
    if (eligible.is_all()) return active_;
    std::vector<std::uint32_t> arms;
    if (eligible.mask) {
        if (eligible.mask->size() != size())
            fail(PyExc_ValueError, "eligible has " + std::to_string(eligible.mask->size()) + " booleans for " +
                                       std::to_string(size()) + " arms; give one for each of bandit.arms");
        for (std::uint32_t arm = 0; arm < size(); ++arm)
            if ((*eligible.mask)[arm]) arms.push_back(arm);
    } else if (eligible.set && eligible.set->table == id_) {
        arms = eligible.set->arms;
    } else {
        arms = look_up(eligible.set ? eligible.set->keys : *eligible.keys).arms;
    }
    std::erase_if(arms, [&](std::uint32_t arm) { return !is_active(arm); });
    if (arms.empty()) fail(PyExc_ValueError, "eligible leaves no arm to play: name at least one that is not retired");
    return arms;
}

void ArmTable::add(nb::object label) {
    labels_.append(label);
    index_[key_of(label)] = size();
    active_.push_back(static_cast<std::uint32_t>(size()));
    is_active_.push_back(1);
    lives_.push_back(++lives);
}

void ArmTable::remove(std::size_t arm) {
    labels_.attr("pop")(arm);
    is_active_.erase(is_active_.begin() + static_cast<std::ptrdiff_t>(arm));
    ended_.insert(lives_[arm]);
    lives_.erase(lives_.begin() + static_cast<std::ptrdiff_t>(arm));
    id_ = ++tables;
    index();
}

void ArmTable::end_life(std::size_t arm) {
    ended_.insert(lives_[arm]);
    lives_[arm] = ++lives;
}

void ArmTable::set_active(std::size_t arm, bool active) {
    is_active_[arm] = active;
    active_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
        if (is_active_[i]) active_.push_back(i);
}

int ArmTable::traverse(visitproc visit, void* arg) const {
    Py_VISIT(labels_.ptr());
    Py_VISIT(index_.ptr());
    return 0;
}

void ArmTable::clear() { labels_ = nb::list(), index_ = nb::dict(); }

}  // namespace armlet
