# SPDX-License-Identifier: Apache-2.0
"""The harness in C for kernels: a host program of OpenCL 1.2."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.portable.c.check import harness_text, size_text
from ferryvm.portable.interface import Geometry, Interface

_INCLUDE = """\
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
"""

_HOST = """\
static void *allocated(size_t size);

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

enum { NO_PLATFORM = -1001 }; /* CL_PLATFORM_NOT_FOUND_KHR, of the loader */

static void ok(cl_int error, const char *what)
{
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\\n", what, (int)error);
        exit(2);
    }
}

/* The first device whose name, or whose platform's, contains the variable DEVICE of the environment. */
static cl_device_id device_by_name(void)
{
    const char *part = getenv("DEVICE");
    cl_platform_id platforms[16];
    cl_uint count = 0;
    cl_int error = clGetPlatformIDs(16, platforms, &count);
    if (error == NO_PLATFORM || (error == CL_SUCCESS && count == 0)) {
        fputs("no OpenCL platform is installed: install the driver of the device, or PoCL for the processor "
              "(pocl-opencl-icd of Debian and Ubuntu)\\n", stderr);
        exit(2);
    }
    ok(error, "clGetPlatformIDs");
    for (cl_uint p = 0; p < count && p < 16; ++p) {
        cl_device_id devices[16];
        cl_uint found = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &found) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < found && d < 16; ++d) {
            char name[256] = "", platform[256] = "";
            clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name, name, NULL);
            clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform, platform, NULL);
            if (part == NULL || strstr(name, part) != NULL || strstr(platform, part) != NULL)
                return devices[d];
        }
    }
    fprintf(stderr, "no device has '%s' in its name\\n", part == NULL ? "" : part);
    exit(2);
}

static void build(void)
{
    cl_device_id device = device_by_name();
    cl_device_fp_config exact = 0;
    cl_int error;
    FILE *source = fopen("@NAME@.cl", "rb");
    if (source == NULL) {
        fprintf(stderr, "@NAME@.cl: cannot be read\\n");
        exit(2);
    }
    fseek(source, 0, SEEK_END);
    size_t size = (size_t)ftell(source);
    rewind(source);
    char *text = malloc(size + 1);
    if (text == NULL || fread(text, 1, size, source) != size)
        exit(2);
    fclose(source);
    const char *texts = text;
    clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof exact, &exact, NULL);
    const char *options = exact & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
        ? "@EXACT@"
        : "@OTHERWISE@";
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    ok(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    ok(error, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &texts, &size, &error);
    ok(error, "clCreateProgramWithSource");
    error = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (error != CL_SUCCESS) {
        static char log[1 << 16];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fprintf(stderr, "%s\\n", log);
    }
    ok(error, "clBuildProgram");
    kernel = clCreateKernel(program, "@NAME@", &error);
    ok(error, "clCreateKernel");
    free(text);
}

static cl_mem buffer(const void *content, size_t size)
{
    cl_int error;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, size + 8, NULL, &error);
    ok(error, "clCreateBuffer");
    if (size)
        ok(clEnqueueWriteBuffer(queue, made, CL_TRUE, 0, size, content, 0, NULL, NULL), "write");
    return made;
}

static void fetch(cl_mem from, void *to, size_t size)
{
    if (size)
        ok(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, size, to, 0, NULL, NULL), "read");
}

static cl_uint given;

static void give(size_t size, const void *value)
{
    ok(clSetKernelArg(kernel, given++, size, value), "clSetKernelArg");
}

@LENT@static int32_t call(const struct value *v, uint64_t *found)
{
    cl_mem arrays[ARGUMENTS + 1], outcomes[RESULTS + 1];
    size_t items = 1, local[DIMENSIONS], global[DIMENSIONS];
    find_sizes(v, local);
    memcpy(global, local, sizeof global);
    for (size_t n = 0; n != COUNTS; ++n)
        global[n] *= (size_t)v[COUNTS - 1 - n].bits;
    for (size_t n = 0; n != DIMENSIONS; ++n)
        items *= global[n];
    if (kernel == NULL)
        build();
    given = 0;
    for (size_t at = COUNTS; at != ARGUMENTS; ++at) {
        if (!arguments[at].is_array) {
            give(arguments[at].bytes, &v[at].bits);
            continue;
        }
        cl_long length = (cl_long)v[at].length;
        arrays[at] = v[at].same == at ? buffer(v[at].data, v[at].length * arguments[at].bytes)
                                      : arrays[v[at].same];
        give(sizeof(cl_mem), &arrays[at]);
        give(sizeof length, &length);
    }
    give_group_arrays(v);
    for (size_t at = 0; at != RESULTS; ++at) {
        outcomes[at] = buffer(&found[at], sizeof found[at]);
        give(sizeof(cl_mem), &outcomes[at]);
    }
    int32_t *states = allocated(sizeof *states * items);
    memset(states, 0, sizeof *states * items);
    cl_mem status = buffer(states, sizeof *states * items);
    give(sizeof(cl_mem), &status);
    if (items)
        ok(clEnqueueNDRangeKernel(queue, kernel, DIMENSIONS, NULL, global, IN_GROUPS ? local : NULL, 0, NULL,
                                  NULL),
           "launch");
    fetch(status, states, sizeof *states * items);
    int32_t first = 0;
    for (size_t item = 0; item < items && first == 0; ++item)
        first = states[item];
    free(states);
    clReleaseMemObject(status);
    for (size_t at = 0; at != RESULTS; ++at) {
        fetch(outcomes[at], &found[at], results[at].bytes);
        clReleaseMemObject(outcomes[at]);
    }
    for (size_t at = COUNTS; at != ARGUMENTS; ++at) {
        if (arguments[at].is_array && v[at].same == at) {
            fetch(arrays[at], v[at].data, v[at].length * arguments[at].bytes);
            clReleaseMemObject(arrays[at]);
        }
    }
    return first;
}
"""


def check_text(interface: Interface, exact: Sequence[str], otherwise: Sequence[str]) -> str:
    """The source of the harness; options of clBuildProgram for a device that divides numbers of f32
    as IEEE 754 says, and for others."""
    host = _HOST.replace("@EXACT@", " ".join(exact)).replace("@OTHERWISE@", " ".join(otherwise))
    host = host.replace("@LENT@", _group_arrays(interface))
    return harness_text(interface, _INCLUDE, _launch(interface) + host)


def _launch(interface: Interface) -> str:
    """The dimensions of the work-items, and the members of a group along each."""
    geometry = interface.geometry or Geometry(())
    dimensions = max(geometry.dimensions, 1)
    sizes = "".join(
        f"    local[{n}] = (size_t)({size_text(interface, geometry.size(n))});\n"
        for n in range(dimensions)
    )
    return (
        f"enum {{ DIMENSIONS = {dimensions}, IN_GROUPS = {int(geometry.group is not None)} }};\n\n"
        "/* The members of a group along each dimension. */\n"
        "static void find_sizes(const struct value *v, size_t *local)\n{\n    (void)v;\n"
        f"{sizes}}}\n\n"
    )


def _group_arrays(interface: Interface) -> str:
    """The function that gives local memory for arrays of a group; it is never empty."""
    lines = "".join(
        f"    give((size_t)({size_text(interface, each.borrowed)}) * {each.element.bytes} + 8, NULL);\n"
        for each in interface.borrowed
        if each.borrowed is not None
    )
    head = "static void give_group_arrays(const struct value *v)"
    return f"/* Local memory. */\n{head}\n{{\n    (void)v;\n{lines}}}\n\n"
