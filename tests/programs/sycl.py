"""A program in SYCL for Python: kernels that the compiler of SYCL has made of C++, copies and a fill, on a device of OpenCL."""

import dpctl.tensor as tensor

values = tensor.arange(20000, dtype="f4")
filled = tensor.full(20000, 2, dtype="f4")
for _ in range(10):
    values = tensor.sin(values) * filled + values
print(round(float(tensor.sum(values)), -6))
print(int(tensor.sum(tensor.astype(filled, "i4"))))
