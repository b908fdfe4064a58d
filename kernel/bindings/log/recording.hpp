// The recorder of a bandit with a log, as the engine sees it; Python's side of it is recording.py.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "bindings/log/lines.hpp"
#include "coins/philox.hpp"

namespace armlet {

namespace nb = nanobind;

class Recording {
  public:
    // `holder` has a `recorder`, its `lock` and its `lines`, which a fork exchanges in the child: all are looked up at
    // every use. The recorder has received the state of step `since` and every decision after it.
    Recording(nb::object holder, Word since) : since(since), holder_(std::move(holder)) {}

    // The recorder's lock for one call: anyone else who takes it finds a change and its record, or neither.
    class Locked {
      public:
        explicit Locked(const Recording& recording);
        ~Locked();
        Locked(const Locked&) = delete;
        Locked& operator=(const Locked&) = delete;

      private:
        nb::object lock_;
    };

    // The record of one change. Of an `armlet.Log` it is lines, which are taken back if the change is not made, with no
    // Python code in between. Any other recorder is called; if then the change is not made, or the call was
    // interrupted, nobody knows what it kept, so that it receives the whole state before the next change.
    class Record {
      public:
        explicit Record(const Recording& recording);
        ~Record();
        Record(const Record&) = delete;
        Record& operator=(const Record&) = delete;

        void change(const char* kind, const nb::dict& fields);
        void change(const char* kind, const nb::list& many);
        void decision(const nb::object& made, const nb::dict& fields);
        void decisions(const nb::object& made, const nb::list& many);
        void keep();
        bool is_of_lines() const { return lines_ != nullptr; }

      private:
        void add_all(const char* kind, const nb::list& many);
        template <typename... Args>
        void call(const char* method, Args&&... args);

        const Recording& recording_;
        nb::object owner_;  // keeps the lines
        Lines* lines_;
        std::optional<Lines::Entry> entry_;
        bool is_decision_ = false, is_called_ = false, is_kept_ = false;
    };

    const Word since;

    int traverse(visitproc visit, void* arg) const;

  private:
    nb::object recorder() const { return holder_.attr("recorder"); }

    nb::object holder_;
};

// Values as a recorder receives them: a list of Python's own.
template <typename Values>
nb::list to_list(const Values& values) {
    nb::list out;
    for (const auto& value : values) out.append(nb::cast(value));
    return out;
}
// (n, dim) as n lists.
nb::list rows_to_list(const std::vector<double>& values, std::size_t dim);

}  // namespace armlet
