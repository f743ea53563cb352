/* SPDX-License-Identifier: Apache-2.0 */
/* Merge sort of a linked list by its links; the sum of value times position, modulo 2^64. */
#include <stdint.h>
#include <stdlib.h>

typedef struct cell {
    int64_t value;
    struct cell *next;
} cell;

static cell *make(int64_t n) {
    cell *all = NULL;
    int64_t random = 12345;
    while (n--) {
        cell *made = malloc(sizeof *made);
        random = (random * 1103515245 + 12345) & 2147483647;
        made->value = random;
        made->next = all;
        all = made;
    }
    return all;
}

static cell *merge(cell *a, cell *b) {
    cell *head, *tail;
    if (b->value < a->value) {
        head = b;
        b = b->next;
    } else {
        head = a;
        a = a->next;
    }
    tail = head;
    while (a && b) {
        if (b->value < a->value) {
            tail->next = b;
            tail = b;
            b = b->next;
        } else {
            tail->next = a;
            tail = a;
            a = a->next;
        }
    }
    tail->next = a ? a : b;
    return head;
}

static cell *sort(cell *all, int64_t n) {
    if (n < 2)
        return all;
    cell *middle = all, *rest;
    for (int64_t left = n / 2 - 1; left; left--)
        middle = middle->next;
    rest = middle->next;
    middle->next = NULL;
    return merge(sort(all, n / 2), sort(rest, n - n / 2));
}

int64_t work(int64_t n) {
    uint64_t sum = 0, position = 1;
    for (cell *at = sort(make(n), n), *next; at; at = next) {
        sum += (uint64_t)at->value * position++;
        next = at->next;
        free(at);
    }
    return (int64_t)sum;
}
