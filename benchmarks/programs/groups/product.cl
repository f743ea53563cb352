// SPDX-License-Identifier: Apache-2.0
// A product of two n x n matrices by plain OpenCL C: a group has a block of BLOCK x BLOCK, an item EACH x EACH elements of it
// in registers. EACH is BLOCK / 16; tiles of both matrices are 16 wide.

kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void product(int n, global const float *restrict a, global const float *restrict b, global float *restrict c)
{
    local float left[16][BLOCK + 4], right[16][BLOCK];
    const int column = get_local_id(0), row = get_local_id(1);
    const int x = get_group_id(0) * BLOCK + column, y = get_group_id(1) * BLOCK;
    float sums[EACH][EACH] = {{0}};
    for (int from = 0; from < n; from += 16) {
        for (int i = 0; i < EACH; i++) {
            left[column][row + 16 * i] = a[(y + row + 16 * i) * n + from + column];
            right[row][column + 16 * i] = b[(from + row) * n + x + 16 * i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++) {
            float rows[EACH], columns[EACH];
            for (int i = 0; i < EACH; i++) {
                rows[i] = left[k][row * EACH + i];
                columns[i] = right[k][column + 16 * i];
            }
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sums[i][j] = fma(rows[i], columns[j], sums[i][j]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            c[(y + row * EACH + i) * n + x + 16 * j] = sums[i][j];
}
