/* Compares the types that driver.h writes out with the CUDA toolkit's header; nothing of it runs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Built into attest-cuda alone, where the header is there. */
#include "kernels/launch/driver.h"

#include <cuda.h>
#include <stddef.h>

#define SAME(what, ...) _Static_assert(__VA_ARGS__, what " is not as the driver has it")
#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)
SAME("at_driver_launch", sizeof(struct at_driver_launch) == sizeof(CUlaunchConfig));
SAME("block", offsetof(struct at_driver_launch, block) == offsetof(CUlaunchConfig, blockDimX));
SAME("shared_bytes", offsetof(struct at_driver_launch, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
SAME("stream", offsetof(struct at_driver_launch, stream) == offsetof(CUlaunchConfig, hStream));
SAME("attributes", offsetof(struct at_driver_launch, attributes) == offsetof(CUlaunchConfig, attrs));
SAME("n_attributes", offsetof(struct at_driver_launch, n_attributes) == offsetof(CUlaunchConfig, numAttrs));
SAME("at_driver_attribute", sizeof(struct at_driver_attribute) == sizeof(CUlaunchAttribute));
SAME("value", offsetof(struct at_driver_attribute, value) == offsetof(CUlaunchAttribute, value));
SAME("at_driver_map", sizeof(struct at_driver_map) == sizeof(CUtensorMap));
SAME_NUMBER(AT_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_NUMBER(AT_LAUNCH_PDL, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_NUMBER(AT_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME_NUMBER(AT_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_NUMBER(AT_FUNCTION_MAX_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_NUMBER(AT_FUNCTION_ANY_CLUSTER, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME_NUMBER(AT_DEVICE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_NUMBER(AT_DEVICE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(AT_DEVICE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME("a code", sizeof(int) == sizeof(CUresult) && sizeof(uint64_t) == sizeof(CUdeviceptr));
