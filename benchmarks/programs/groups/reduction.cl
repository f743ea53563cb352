// SPDX-License-Identifier: Apache-2.0
// Sums of elements that are a stride apart, then of the items of a group as a tree.
#pragma OPENCL FP_CONTRACT OFF

kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))
void item(long n, global const float *from, global float *to)
{
    local float sums[SIZE];
    const int mine = get_local_id(0), stride = get_global_size(0);
    float sum = 0;
    for (int i = get_global_id(0); i < n; i += stride)
        sum += from[i];
    sums[mine] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = SIZE / 2; width > 0; width /= 2) {
        if (mine < width)
            sums[mine] += sums[mine + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (mine == 0)
        to[get_group_id(0)] = sums[0];
}
