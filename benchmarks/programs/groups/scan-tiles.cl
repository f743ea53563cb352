// SPDX-License-Identifier: Apache-2.0
// An inclusive scan by tiles: sums of tiles, their scan by one group, and the scans of the tiles.
#define TILE (SIZE * EACH)

int scan_group(local int *totals, int value)
{
    const int mine = get_local_id(0);
    totals[mine] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int distance = 1; distance < SIZE; distance *= 2) {
        int before = mine >= distance ? totals[mine - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        value += before;
        totals[mine] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return value;
}

void load(local int *tile, global const int *from, int first, int n)
{
    for (int i = get_local_id(0); i < TILE; i += SIZE)
        tile[i] = first + i < n ? from[first + i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
}

int sum_of(local const int *tile)
{
    int sum = 0;
    for (int i = 0; i < EACH; i++)
        sum += tile[get_local_id(0) * EACH + i];
    return sum;
}

kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))
void tile_sums(long n, global const int *from, global int *sums)
{
    local int tile[TILE], totals[SIZE];
    load(tile, from, get_group_id(0) * TILE, n);
    int total = scan_group(totals, sum_of(tile));
    if (get_local_id(0) == SIZE - 1)
        sums[get_group_id(0)] = total;
}

kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))
void carries(long tiles, global int *sums)
{
    local int totals[SIZE];
    int carry = 0;
    for (int first = 0; first < tiles; first += SIZE) {
        int i = first + get_local_id(0);
        int total = scan_group(totals, i < tiles ? sums[i] : 0);
        if (i < tiles)
            sums[i] = carry + total;
        carry += totals[SIZE - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel __attribute__((reqd_work_group_size(SIZE, 1, 1)))
void item(long n, global const int *from, global int *to, global const int *sums)
{
    local int tile[TILE], totals[SIZE];
    const int mine = get_local_id(0), group = get_group_id(0), first = group * TILE;
    load(tile, from, first, n);
    int sum = sum_of(tile);
    int total = scan_group(totals, sum) - sum + (group > 0 ? sums[group - 1] : 0);
    for (int i = 0; i < EACH; i++) {
        total += tile[mine * EACH + i];
        tile[mine * EACH + i] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = mine; i < TILE; i += SIZE)
        if (first + i < n)
            to[first + i] = tile[i];
}
