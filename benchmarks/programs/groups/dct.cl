// SPDX-License-Identifier: Apache-2.0
// The cosine transform of 8 x 8 blocks: their rows, then their columns.
#pragma OPENCL FP_CONTRACT OFF

kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void item(long columns, global const float *pixels, global const float *cosines, global float *to)
{
    local float block[8][8], rows[8][8];
    const int column = get_local_id(0), row = get_local_id(1);
    const int at = get_global_id(1) * (int)columns + get_global_id(0);
    block[row][column] = pixels[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum += block[row][k] * cosines[column * 8 + k];
    rows[row][column] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (int k = 0; k < 8; k++)
        sum += rows[k][column] * cosines[row * 8 + k];
    to[at] = sum;
}
