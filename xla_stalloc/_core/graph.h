// What a scheduler sees of a computation: nodes with predecessors, and buffers that nodes touch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.h"

namespace xla_stalloc {

using Order = std::vector<std::int32_t>;

// Rows of numbers, one behind the other.
class Csr {
 public:
  class Row {
   public:
    Row(const std::int32_t* begin, const std::int32_t* end) : begin_(begin), end_(end) {}
    const std::int32_t* begin() const { return begin_; }
    const std::int32_t* end() const { return end_; }
    bool empty() const { return begin_ == end_; }
    int size() const { return static_cast<int>(end_ - begin_); }

   private:
    const std::int32_t *begin_, *end_;
  };

  Csr() = default;
  Csr(std::vector<std::int32_t> offsets, std::vector<std::int32_t> items)
      : offsets_(std::move(offsets)), items_(std::move(items)) {}

  int rows() const { return static_cast<int>(offsets_.size()) - 1; }
  Row operator[](int row) const { return {items_.data() + offsets_[row], items_.data() + offsets_[row + 1]}; }

  // Row j of the result holds, ascending, every i whose row holds j.
  Csr transposed(int columns) const;

 private:
  std::vector<std::int32_t> offsets_{0}, items_;
};

struct Graph {
  int nodes = 0;
  int buffers = 0;
  Csr predecessors, successors;       // of each node; the node numbers are a topological order
  std::vector<std::int64_t> lump;     // of each node: bytes that live only while it runs
  std::vector<std::int64_t> size;     // of each buffer, in bytes
  Csr touched;                        // of each node: the buffers it touches
  Csr touches;                        // of each buffer: the nodes that touch it
  Csr reuses;                         // of each buffer: buffers of the same size whose storage it may take at birth
  std::vector<char> live_in, live_out;  // of each buffer
  std::vector<char> may_reuse;        // of each node: some buffer it touches has reuses
};

// The order, if it holds every node once; raises ValueError otherwise. Whether predecessors come first is not checked.
Order read_order(const Graph& graph, const Input<std::int64_t>& order);

void register_graph(nanobind::module_& m);

}  // namespace xla_stalloc
