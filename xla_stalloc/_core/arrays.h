// Numbers across the border between numpy and C++: read in place, handed back without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace xla_stalloc {

namespace nb = nanobind;

template <typename T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Int64Output = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

template <typename To, typename From>
std::vector<To> to_vector(const Input<From>& array) {
  std::vector<To> values(array.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<To>(array.data()[i]);
  return values;
}

template <typename T>
Int64Output to_numpy(const std::vector<T>& values) {
  auto owned = std::make_unique<std::vector<std::int64_t>>(values.begin(), values.end());
  std::int64_t* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* pointer) noexcept { delete static_cast<std::vector<std::int64_t>*>(pointer); });
  return Int64Output(data, {size}, owner);
}

}  // namespace xla_stalloc
