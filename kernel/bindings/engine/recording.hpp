// The recorder of a bandit with a log, as the engine sees it; Python's side of it is recording.py.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "coins/philox.hpp"

namespace armlet {

namespace nb = nanobind;

class Recording {
  public:
    // `holder` has a `recorder` and its `lock`, which a fork exchanges in the child: both are looked up at every use.
    // The recorder has received the state of step `since` and every decision after it.
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

    void on_decision(nb::handle decision) const { recorder().attr("on_decision")(decision); }
    void on_decisions(nb::handle decisions) const { recorder().attr("on_decisions")(decisions); }
    void on_event(const char* kind, const nb::object& fields) const { recorder().attr("on_event")(kind, fields); }
    void on_event(const char* kind, const nb::list& many) const { recorder().attr("on_events")(kind, many); }

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
