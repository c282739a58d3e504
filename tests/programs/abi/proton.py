"""Profiles kernels of OpenCL with Triton's Proton, which is told that they are CUDA's: 7 in one scope, 5 in another one.

Arguments: Proton's library, the library of the kernels, and the file of the profile without its ending.
"""

import ctypes
import importlib.util
import sys

proton_library, kernels_library, profile = sys.argv[1:]
specification = importlib.util.spec_from_file_location("libproton", proton_library)
module = importlib.util.module_from_spec(specification)
specification.loader.exec_module(module)
proton = module.proton

session = proton.start(profile, "shadow", "tree", "cupti", "")
kernels = ctypes.CDLL(kernels_library)
kernels.open_device()
for scope, kernel, count in (("adds", 0, 7), ("muls", 1, 5)):
    number = proton.record_scope()
    proton.enter_scope(number, scope)
    kernels.launch(kernel, count)
    proton.exit_scope(number, scope)
kernels.finish()
proton.finalize(session, "hatchet")
