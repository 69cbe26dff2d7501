// SPDX-License-Identifier: MIT
// Every format and scheme header under nvcc, and the block machinery used from a kernel through a view.
#include <numfmt/numfmt.hpp>

namespace {

using namespace numfmt;

template <class S> __global__ void decode_first_column(quantized_view<const S> q, float* y) {
    const int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r >= q.rows()) return;
    const int64_t i = S::block.rows == whole ? 0 : r / S::block.rows;
    const auto scale = detail::scale_from_storage<S>(q.scale(i, 0), 0);
    const uint8_t code = q.code(r, 0);
    detail::decode_chunk<S>(scale, &code, 1, y + r);
}

}  // namespace

void use(float* y) {
    for_each(all_schemes{}, [&]<class S>() { decode_first_column<S><<<1, 32>>>(quantized_view<const S>{}, y); });
}
