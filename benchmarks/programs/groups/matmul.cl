// SPDX-License-Identifier: Apache-2.0
// A product of two n x n matrices by tiles.
#pragma OPENCL FP_CONTRACT OFF

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void item(long n, global const float *a, global const float *b, global float *c)
{
    local float left[TILE][TILE], right[TILE][TILE];
    const int column = get_local_id(0), row = get_local_id(1), size = n;
    const int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int from = 0; from < size; from += TILE) {
        left[row][column] = a[y * size + from + column];
        right[row][column] = b[(from + row) * size + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += left[row][k] * right[k][column];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * size + x] = sum;
}
