// SPDX-License-Identifier: Apache-2.0
// The transpose of a matrix by tiles; an item moves TILE / ROWS elements.

kernel __attribute__((reqd_work_group_size(TILE, ROWS, 1)))
void item(long rows, long columns, global const float *from, global float *to)
{
    local float tile[TILE][TILE + 1];
    const int column = get_local_id(0), row = get_local_id(1);
    const int x = get_group_id(0) * TILE, y = get_group_id(1) * TILE;
    for (int step = row; step < TILE; step += ROWS)
        tile[step][column] = from[(y + step) * (int)columns + x + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = row; step < TILE; step += ROWS)
        to[(x + step) * (int)rows + y + column] = tile[column][step];
}
