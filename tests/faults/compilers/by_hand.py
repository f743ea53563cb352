# SPDX-License-Identifier: Apache-2.0
"""Programs by hand that have what compilers treat each in its own way: nests that store, short
loops, loops that only count, NaNs that are stored, calls that leave, cycles with several entries,
words of all sizes, exceptions that cross calls, arrays and structs.

They call no host: a host call ends the region that a whole program is.
"""

from __future__ import annotations

from tests.engine.throwing import PROGRAMS as THROWN

from .assembly_by_hand import BEHIND, BYTES, ENTRIES, OBJECTS, PREPARED

BY_HAND: dict[str, str] = {
    "nest": """
(define (f v w u n m)
  (define i 0)
  (while (< i n)
    (let ((j i))
      (while (< j m)
        (vector-set! w j (- (vector-ref w j) (vector-ref v i)))
        (vector-set! v i (+ (vector-ref v i) (vector-ref u i)))
        (set! j (+ j 1))))
    (set! i (+ i 1))))
(define a (make-vector i64 8))
(define other (make-vector i64 2))
(define b (make-vector i64 8))
(define c (make-vector i64 8))
(define k 0)
(while (< k 8) (vector-set! a k (* k k)) (vector-set! c k (- 7 k)) (set! k (+ k 1)))
(f a b c 5 8)
(f a a c 5 8)
(f a b a 3 8)
(f b c a 5 9)
""",
    "limits": """
(define (f (a (array i64)) (b (array i64)) n)
  (define k 3)
  (define s 0)
  (while (!= n 0)
    (set! k (% (+ (* k 5) 3) 8))
    (set! s (+ s (* (array-ref a k) (array-ref b k))))
    (set! n (- n 1)))
  s)
(define a (make-array i64 8))
(define b (make-array i64 8))
(define i 0)
(while (< i 8) (array-set! a i (* i i)) (array-set! b i (- 5 i)) (set! i (+ i 1)))
(f a b 20)
(f b (make-array i64 5) 20)
""",
    "down": """
(define (g (a (array i64)) n m)
  (define s 0)
  (define i (- n 1))
  (while (>= i 0)
    (set! s (+ s (array-ref a (+ i m))))
    (set! i (- i 1)))
  s)
(define a (make-array i64 8))
(g a 8 0)
(g a 6 2)
(g a 8 1)
""",
    "jam": """
(define (f (a (array f64)) (b (array f64)) (c (array f64)) n m)
  (define j 0)
  (while (< j n)
    (let ((s (array-ref b j)) (k 0))
      (while (< k m)
        (set! s (+ (* s 0.5) (- (array-ref a k) (array-ref b (+ j k)))))
        (set! k (+ k 1)))
      (array-set! c (+ j 1) s))
    (set! j (+ j 1))))
(define a (make-array f64 4))
(define b (make-array f64 18))
(define c (make-array f64 18))
(define i 0)
(while (< i 18)
  (if (< i 4) (array-set! a i (f64 (* i i))))
  (array-set! b i (f64 (- 9 i)))
  (set! i (+ i 1)))
(f a b c 15 3)
(f a b b 15 3)
(f a b c 16 4)
""",
    "checks": """
(define out 1)
(define (pick v i n) (if (and (> i 2) (< i n)) (vector-ref v i) (if (> 3 i) 1 (/ 100 (- i n)))))
(define (sum v n start)
  (define i start) (define s 0)
  (while (< i n) (set! s (+ s (pick v i n) (vector-ref v i))) (set! i (+ i 1))) s)
(define v (make-vector i64 9))
(vector-set! v 4 -5)
(set! out (+ (* 7 out) (sum v 9 0)))
(set! out (+ (* 7 out) (pick v 9 8)))
(set! out (+ (* 7 out) (sum v 9 3)))
(set! out (+ (* 7 out) (sum v 9 -2)))
""",
    "statics": """
(define out 1)
(define count 0) (define total 1.5) (define last 3)
(define (step x) (set! count (+ count 1)) (if (> count 5) (set! total (+ total x))) count)
(define (walk n) (define i 0)
  (while (< i n) (step (f64 i)) (set! last (+ last count)) (set! i (+ i 1))) last)
(set! out (+ (* 7 out) (walk 9)))
(set! out (+ (* 7 out) (/ last (- count 9))))
""",
    "nan": """
(define out 1)
(define (mix v n x)
  (define i 0) (define y 1.0)
  (while (< i n)
    (set! y (- (* y (/ x x)) (sqrt (- 0.0 y))))
    (vector-set! v i (+ y 1.0))
    (vector-set! v (+ i 1) (- y 1.0))
    (vector-set! v (+ i 2) (* y x))
    (set! i (+ i 3)))
  (if (< y 1.0) 1 (if (>= y 1.0) 2 3)))
(define v (make-vector f64 12))
(set! out (+ (* 7 out) (mix v 9 0.0)))
(set! out (+ (* 7 out) (mix v 9 2.5)))
(set! out (+ (* 7 out) (mix v 12 0.0)))
(set! out (+ (* 7 out) (mix v 15 0.0)))
""",
    "bytes": BYTES,
    "counting": """
(define out 1)
(define (tri n start) (define s 3) (define i start)
  (while (< i n) (set! s (+ s i)) (set! i (+ i 1))) (+ (* 1000 i) s))
(set! out (+ (* 7 out) (tri 10 0)))
(set! out (+ (* 7 out) (tri 0 5)))
(set! out (+ (* 7 out) (tri -4 7)))
(set! out (+ (* 7 out) (tri 7 7)))
(set! out (+ (* 7 out) (tri 9 -3)))
""",
    "short": """
(define (conv a c n)
  (define i 0)
  (while (< i n)
    (let ((t 0) (k 0))
      (while (< k 4) (set! t (+ t (* (vector-ref a (+ i k)) k))) (set! k (+ k 1)))
      (vector-set! c i t))
    (set! i (+ i 1))))
(define (sweep a n) (define i 2)
  (while (< i n)
    (vector-set! a i (+ (vector-ref a (- i 1)) (vector-ref a (- i 2))))
    (if (> (vector-ref a i) 20) (vector-set! a i 1))
    (set! i (+ i 1))))
(define a (make-vector i64 20))
(define c (make-vector i64 20))
(vector-set! a 0 1)
(sweep a 20)
(conv a c 16)
(conv a a 16)
(conv a c 18)
""",
    "sums": """
(define out 1)
(define (total v n) (define i 0) (define s 0)
  (while (< i n) (set! s (+ s (vector-ref v i))) (set! i (+ i 1))) s)
(define (walk v n start) (define i start) (define s 0)
  (while (< i n) (set! s (- (* 3 s) (vector-ref v (- i 1)))) (set! i (+ i 2))) s)
(define v (make-vector i64 9))
(vector-set! v 8 7)
(vector-set! v 0 5)
(set! out (+ (* 7 out) (total v 9)))
(set! out (+ (* 7 out) (walk v 9 1)))
(set! out (+ (* 7 out) (walk v 10 1)))
(set! out (+ (* 7 out) (walk v 5 0)))
""",
    "past": """
(define out 1)
(define (total v n) (define i 0) (define s 0)
  (while (< i n) (set! s (+ s (vector-ref v i))) (set! i (+ i 1))) s)
(define v (make-vector i64 9))
(define w (make-vector i64 1))
(set! out (+ (* 7 out) (total v 10)))
""",
    "calls": """
(define out 1)
(define g 1)
(define (leaf a b) (set! g (+ g a)) (/ a b))
(define (middle a n) (define x (* a 3)) (define y (leaf x n)) (+ y (leaf y (- n 1))))
(define (down n) (if (< n 1) g (+ 1 (down (- n 1)))))
(set! out (+ (* 7 out) (down 20)))
(set! out (+ (* 7 out) (middle 7 3)))
(define i 0)
(while (< i 4)
(set! out (+ (* 7 out) (middle i (- 5 i)))) (set! i (+ i 1)))
(set! out (+ (* 7 out) (middle 5 1)))
""",
    "entries": ENTRIES,
    "rounding": """
(define (all v n) (define i 0) (define s 0.0)
  (while (< i n)
    (let ((x (+ 0.5 (f64 i))))
      (set! s (+ (* s 0.1) (nearest x)))
      (vector-set! v i (- (* x x 0.3) (* s 0.7))))
    (set! i (+ i 1))) s)
(define v (make-vector f64 8))
(define x (all v 8))
(define y (all v 9))
""",
    "invariant": """
(define out 1)
(define (quotients n a b) (define i 0) (define s 0)
  (while (< i n) (set! s (+ s (/ a b))) (set! i (+ i 1))) s)
(define (first v n) (define i 0) (define s 0)
  (while (< i n)
    (set! s (+ s (vector-ref v 0)))
    (vector-set! v i (+ 5 s))
    (set! i (+ i 1))) s)
(define v (make-vector i64 6))
(set! out (+ (* 7 out) (quotients 3 17 5)))
(set! out (+ (* 7 out) (quotients 0 17 0)))
(set! out (+ (* 7 out) (first v 6)))
(set! out (+ (* 7 out) (first v 6)))
(set! out (+ (* 7 out) (quotients 2 17 0)))
""",
    "effects": """
(define out 1)
(define (poke v x) (vector-set! v 0 x) (if (> x 50) (vector-set! v 1 (poke v (- x 50)))) x)
(define (around v x) (let ((a (vector-ref v 0))) (poke v x) (+ (* 3 a) (vector-ref v 0))))
(define (either v x)
  (let ((a (vector-ref v 1))) (if (> x 3) (vector-set! v 1 x)) (- (* 5 a) (vector-ref v 1))))
(define (order a b)
  (if (> a b) (if (< a b) 1 (if (<= b a) (if (> b a) 5 2) 3)) (if (< a b) (if (>= b a) 6 7) 4)))
(define v (make-vector i64 2))
(set! out (+ (* 7 out) (around v 4)))
(set! out (+ (* 7 out) (around v 90)))
(set! out (+ (* 7 out) (either v 9)))
(set! out (+ (* 7 out) (either v 2)))
(set! out (+ (* 7 out) (order 3 2)))
(set! out (+ (* 7 out) (order 2 3)))
(set! out (+ (* 7 out) (order 2 2)))
""",
    "wide": """
(define out 1)
(define (product a b n) (define i 0) (define s 0.0)
  (while (< i n) (set! s (+ s (* (vector-ref a i) (vector-ref b i)))) (set! i (+ i 1))) s)
(define (signs n m) (define s 0)
  (while (< n m) (set! s (+ s (* n (>> n 3)) (% n 7) (/ n 3))) (set! n (+ n 5))) s)
(define a (make-vector f64 9))
(define b (make-vector f64 9))
(define i 0)
(while (< i 9)
  (vector-set! a i (+ 0.1 (* 0.3 (f64 i))))
  (vector-set! b i (- 1.7 (/ 1.0 (+ 3.0 (f64 i)))))
  (set! i (+ i 1)))
(define x (product a b 9))
(set! out (+ (* 7 out) (signs -40 30)))
""",
    "wrap": """
(define out 1)
(define (leap v n start) (define i start) (define s 0)
  (while (< i n) (set! s (+ s (vector-ref v (* i 4)))) (set! i (+ i 1))) s)
(define v (make-vector i64 12))
(vector-set! v 4 3)
(set! out (+ (* 7 out) (leap v 3 0)))
(set! out (+ (* 7 out) (leap v 3 -4611686018427387904)))
""",
    "brink": """
(define out 1)
(define (fill v n m) (define i 0)
  (while (< i n)
    (let ((j 0))
      (while (< j m) (vector-set! v j (+ (vector-ref v j) i)) (set! j (+ j 1))))
    (set! i (+ i 1))))
(define v (make-vector i64 8))
(define w (make-vector i64 3))
(fill v 3 8)
(vector-set! w 0 5)
(fill v 3 9)
""",
    "pair": """
(define out 1)
(define (pair v i) (+ (vector-ref v i) (vector-ref v (+ i 1))))
(define v (make-vector i64 8))
(define w (make-vector i64 3))
(set! out (+ (* 7 out) (pair v 6)))
(set! out (+ (* 7 out) (pair v 7)))
""",
    "minus": """
(define out 1)
(define (parts a b) (define q (/ a b)) (if (= b -1) (+ q 100) (if (= a (<< 1 63)) (+ q 7) (- q 1))))
(set! out (+ (* 7 out) (parts 20 3)))
(set! out (+ (* 7 out) (parts 20 -1)))
(set! out (+ (* 7 out) (parts (<< 1 63) 5)))
""",
    "signs": """
.static t i64
.static x i32
.function main
    i32.const -3
    static.set x
    static.get x
    i64.extend_i32_s
    static.set t
    static.get x
    call work
    static.set t
    halt
.function work (n i32) -> i64
    local.get n
    i32.const 1
    i32.add
    i64.extend_i32_s
    return
""",
    "spread": """
(define (spread v w u x n) (define i 0)
  (while (< i n)
    (let ((y (vector-ref v i)))
      (vector-set! w i (/ y y))
      (vector-set! u i (- (/ y y) 1.0))
      (vector-set! x i (* (/ y y) y)))
    (set! i (+ i 1))))
(define v (make-vector f64 8))
(define w (make-vector f64 8))
(define u (make-vector f64 8))
(define x (make-vector f64 8))
(vector-set! v 2 1.5)
(spread v w u x 8)
""",
    "turns": """
(define out 1)
(define (turns a b c n) (define i 0)
  (while (< i n) (let ((t a)) (set! a b) (set! b c) (set! c t)) (set! i (+ i 1)))
  (+ a (* 10 b) (* 100 c)))
(set! out (turns 1 2 3 4))
""",
    "behind": BEHIND,
    "grown": """
(define (grown x n)
  (let ((y (/ x x)) (z (* x 2.0)))
    (let ((v (make-vector f64 n)))
      (vector-set! v 0 y) (vector-set! v 1 z) v)))
(define a (make-vector f64 2))
(define v (grown (vector-ref a 1) 1500))
""",
    "halves": """
.data 0 i64 81985529216486895 -1
.static s i64
.static t i64
.function main
.local p i64
    local.get p
    i64.const -2
    i64.store 0
    local.get p
    i32.const 77
    i32.store 4
    local.get p
    i64.load 0
    static.set s
    local.get p
    i64.load 8
    i64.const 1
    i64.add
    local.get p
    i32.const 9
    i32.store 12
    local.get p
    i64.load 8
    i64.add
    static.set t
    local.get p
    i64.load 0
    local.set p
    local.get p
    i32.wrap_i64
    i64.extend_i32_s
    i64.const 5
    i64.rem_u
    local.get p
    i64.add
    static.set s
    halt
""",
    "thrown": THROWN["tags of all types above operands"],
    "caught": THROWN["one handler of several tags"],
    "records": THROWN["records thrown on"],
    "objects": OBJECTS,
    "updates": """
(define out 1)
(define (walk a b n)
  (define i 0)
  (define s 0)
  (while (< i n)
    (set! s (+ s (array-ref a (& i 3))))
    (atomic-add! a (& i 3) i)
    (atomic-or! b 0 i)
    (atomic-min! b 1 (- i 3))
    (atomic-max! b 2 (- i 3))
    (set! s (+ s (array-ref a (& i 3))))
    (set! s (+ (* 3 s) (atomic-exchange! b 3 i)))
    (set! s (+ s (atomic-compare-exchange! b 3 (* 2 (% i 4)) 7)))
    (set! i (+ i 1)))
  s)
(define a (array i64 1 2 3 4))
(define b (array u32 4 5 -6 7))
(define c (array u32 5 5 5 5))
(set! out (+ (* 7 out) (walk a b 9)))
(set! out (+ (* 7 out) (walk a c 9)))
(set! out (+ (* 7 out) (array-ref b 0)))
(set! out (+ (* 7 out) (array-ref c 1)))
(atomic-and! c 2 12)
(set! out (+ (* 7 out) (array-ref c 2)))
""",
    "elements": """
.static out i64
.function main
.local bytes u8[]
.local words i32[]
.local others i32[]
.local a i64[]
.local b i64[]
.local n i64
:churn
    local.get n
    i64.const 100
    array.new_i64
    local.set a
    static.get out
    local.get a
    i64.const 99
    array.get_i64
    i64.add
    static.set out
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 40
    i64.lt_s
    jump_if churn
    i32.const 200
    i64.const 5
    array.new_u8
    local.set bytes
    local.get bytes
    i64.const 2
    array.get_u8
    call mix
    i64.const 8
    array.new_default_i32
    local.set words
    local.get words
    i64.const 2
    i32.const 7
    i64.const 3
    array.fill_i32
    local.get words
    i64.const 7
    i32.const 99
    i64.const 0
    array.fill_i32
    local.get words
    i64.const 4
    array.get_i32
    call mix
    local.get words
    i64.const 5
    array.get_i32
    call mix
    local.get words
    i64.const 7
    array.get_i32
    call mix
    local.get words
    i64.const 2
    i32.const 1
    array.set_i32
    local.get words
    i64.const 3
    i32.const 2
    array.set_i32
    local.get words
    i64.const 3
    local.get words
    i64.const 2
    i64.const 4
    array.copy_i32
    local.get words
    i64.const 5
    array.get_i32
    call mix
    i32.const 3
    i64.const 4
    array.new_i32
    local.set others
    local.get words
    i64.const 1
    local.get others
    i64.const 0
    i64.const 2
    array.copy_i32
    local.get words
    i64.const 1
    array.get_i32
    call mix
    local.get others
    i64.const 1
    array.get_i32
    call mix
    i64.const 5000
    array.new_default_i64
    local.set a
    i64.const 5000
    array.new_default_i64
    local.set b
    local.get a
    i64.const 0
    i64.const 5
    array.set_i64
    local.get b
    i64.const 0
    i64.const 6
    array.set_i64
    local.get a
    i64.const 0
    array.get_i64
    i32.wrap_i64
    call mix
    halt
.function mix (value i32)
    static.get out
    i64.const 31
    i64.mul
    local.get value
    i64.extend_i32_s
    i64.add
    static.set out
    return
""",
    "prepared": PREPARED,
}
"""Texts by name: Skiff, or assembly."""
