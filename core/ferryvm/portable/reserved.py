# SPDX-License-Identifier: Apache-2.0
"""Names that compilers of C, C++ and OpenCL C know already: keywords, macros, functions."""

from __future__ import annotations

import re

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm fortran typeof typeof_unqual bool true false alignas alignof catch char8_t
char16_t char32_t class co_await co_return co_yield concept const_cast consteval constexpr constinit
decltype delete dynamic_cast explicit export friend mutable namespace new noexcept nullptr
operator private protected public reinterpret_cast requires static_assert static_cast template this
thread_local throw try typeid typename using virtual wchar_t xor and and_eq bitand bitor compl not
not_eq or or_eq xor_eq kernel global local constant uchar ushort uint ulong half quad complex
imaginary event_t sampler_t read_only write_only read_write pipe uniform reserve_id_t queue_t
ndrange_t clk_event_t size_t ptrdiff_t intptr_t uintptr_t intmax_t uintmax_t ssize_t off_t errno
main noreturn math_errhandling stdin stdout stderr i386 linux unix mips sparc sun hpux
"""
KEYWORDS = frozenset(_WORDS.split())
"""Words that no exported name may be: keywords of C11, C++ and OpenCL C, types, and what GNU C
defines or adds without underscores (`linux`, `typeof`)."""

TYPES = re.compile(
    r"u?int(_fast|_least)?(8|16|32|64)_t|image[123]d\w*_t"
    r"|(u?(char|short|int|long)|half|float|double|bool)(2|3|4|8|16)"
)
"""Types with numbers in their names."""

MACROS = re.compile(
    r"U?INT(\d+|_FAST\d+|_LEAST\d+|MAX|PTR)_(C|MAX|MIN|WIDTH)"
    r"|(BOOL|S?CHAR|UCHAR|U?SHRT|U?INT|U?LONG|U?LLONG|U?LONG_LONG|S?SIZE|PTRDIFF|SIG_ATOMIC|WCHAR"
    r"|WINT|RAND|TMP|FOPEN|FILENAME|MB_LEN|MB_CUR)_(BIT|MAX|MIN|WIDTH)"
    r"|(FLT|DBL|LDBL|HALF|DECIMAL|M|FP|FE|MATH|HUGE|LC|SEEK|EXIT|SIG|TIME|ATOMIC|TSS)_\w+"
    r"|atomic_\w+|(CL|CLK|CLANG|LLVM|POCL|FERRY|cl|cles)_\w+"
    r"|(PRI|SCN)[a-zX]\w+|SIG[A-Z]\w+|E[A-Z0-9]{3,}|S?NAN[FL]?\w*"
    r"|MAXFLOAT|INFINITY|NULL|EIO|EOF|WEOF|BUFSIZ|CLOCKS_PER_SEC|ONCE_FLAG_INIT|L_tmpnam|I"
)
"""Macros of the headers of C11 and of OpenCL C, most of them by the beginnings that the standard
reserves for them (7.31). Those with parameters are left out where they are functions, too: the name
of an argument has no parenthesis behind it."""

_LIBRARY = """
abort abs access acos acosf acosh acoshf acoshl acosl alarm aligned_alloc asctime asctime_r asin
asinf asinh asinhf asinhl asinl at_quick_exit atan atan2 atan2f atan2l atanf atanh atanhf atanhl
atanl atexit atof atoi atol atoll bsearch btowc c16rtomb c32rtomb cabs cabsf cabsl cacos cacosf
cacosh cacoshf cacoshl cacosl call_once calloc carg cargf cargl casin casinf casinh casinhf casinhl
casinl catan catanf catanh catanhf catanhl catanl cbrt cbrtf cbrtl ccos ccosf ccosh ccoshf ccoshl
ccosl ceil ceilf ceill cexp cexpf cexpl chdir chown cimag cimagf cimagl clearerr clock
clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clog clogf clogl close
cnd_broadcast cnd_destroy cnd_init cnd_signal cnd_timedwait cnd_wait confstr conj conjf conjl
copysign copysignf copysignl cos cosf cosh coshf coshl cosl cpow cpowf cpowl cproj cprojf cprojl
creal crealf creall csin csinf csinh csinhf csinhl csinl csqrt csqrtf csqrtl ctan ctanf ctanh ctanhf
ctanhl ctanl ctermid ctime ctime_r difftime div dprintf dup dup2 duplocale erf erfc erfcf erfcl erff
erfl execl execle execlp execv execve execvp exit exp exp2 exp2f exp2l expf expl expm1 expm1f expm1l
fabs fabsf fabsl faccessat fchdir fchown fchownat fclose fdatasync fdim fdimf fdiml fdopen
feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof feraiseexcept ferror fesetenv
fesetexceptflag fesetround fetestexcept feupdateenv fexecve fflush fgetc fgetpos fgets fgetwc fgetws
fileno flockfile floor floorf floorl fma fmaf fmal fmax fmaxf fmaxl fmemopen fmin fminf fminl fmod
fmodf fmodl fopen fork fpathconf fprintf fputc fputs fputwc fputws fread free freelocale freopen
frexp frexpf frexpl fscanf fseek fseeko fsetpos fsync ftell ftello ftruncate ftrylockfile
funlockfile fwide fwprintf fwrite fwscanf getc getc_unlocked getchar getchar_unlocked getcwd
getdelim getegid getenv geteuid getgid getgroups gethostname getline getlogin getlogin_r getopt
getpgid getpgrp getpid getppid getsid getsubopt getuid getwc getwchar gmtime gmtime_r hypot hypotf
hypotl ilogb ilogbf ilogbl imaxabs imaxdiv index isalnum isalnum_l isalpha isalpha_l isatty isblank
isblank_l iscntrl iscntrl_l isdigit isdigit_l isgraph isgraph_l islower islower_l isprint isprint_l
ispunct ispunct_l isspace isspace_l isupper isupper_l iswalnum iswalnum_l iswalpha iswalpha_l
iswblank iswblank_l iswcntrl iswcntrl_l iswctype iswctype_l iswdigit iswdigit_l iswgraph iswgraph_l
iswlower iswlower_l iswprint iswprint_l iswpunct iswpunct_l iswspace iswspace_l iswupper iswupper_l
iswxdigit iswxdigit_l isxdigit isxdigit_l j0 j1 jn kill labs lchown ldexp ldexpf ldexpl ldiv lgamma
lgammaf lgammal link linkat llabs lldiv llrint llrintf llrintl llround llroundf llroundl localeconv
localtime localtime_r log log10 log10f log10l log1p log1pf log1pl log2 log2f log2l logb logbf logbl
logf logl longjmp lrint lrintf lrintl lround lroundf lroundl lseek malloc mblen mbrlen mbrtoc16
mbrtoc32 mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstowcs mbtowc memchr memcmp memcpy memmove memset
mkdtemp mkstemp mktime modf modff modfl mtx_destroy mtx_init mtx_lock mtx_timedlock mtx_trylock
mtx_unlock nan nanf nanl nanosleep nearbyint nearbyintf nearbyintl newlocale nextafter nextafterf
nextafterl nexttoward nexttowardf nexttowardl open_memstream open_wmemstream pathconf pause pclose
perror pipe popen posix_memalign pow powf powl pread printf psiginfo psignal pthread_kill
pthread_sigmask putc putc_unlocked putchar putchar_unlocked puts putwc putwchar pwrite qsort
quick_exit raise rand rand_r read readlink readlinkat realloc remainder remainderf remainderl remove
remquo remquof remquol rename renameat rewind rint rintf rintl rmdir round roundf roundl scalbln
scalblnf scalblnl scalbn scalbnf scalbnl scanf setbuf setegid setenv seteuid setgid setjmp setlocale
setpgid setsid setuid setvbuf sigaction sigaddset sigdelset sigemptyset sigfillset sigismember
siglongjmp signal signbit sigpending sigprocmask sigqueue sigsuspend sigtimedwait sigwait
sigwaitinfo sin sinf sinh sinhf sinhl sinl sleep snprintf sprintf sqrt sqrtf sqrtl srand sscanf
stpcpy stpncpy strcat strchr strcmp strcoll strcoll_l strcpy strcspn strdup strerror strerror_l
strerror_r strftime strftime_l strlen strncat strncmp strncpy strndup strnlen strpbrk strrchr
strsignal strspn strstr strtod strtof strtoimax strtok strtok_r strtol strtold strtoll strtoul
strtoull strtoumax strxfrm strxfrm_l swprintf swscanf symlink symlinkat sysconf system tan tanf tanh
tanhf tanhl tanl tcgetpgrp tcsetpgrp tgamma tgammaf tgammal thrd_create thrd_current thrd_detach
thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield time timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timespec_get tmpfile tmpnam tolower tolower_l toupper toupper_l
towctrans towctrans_l towlower towlower_l towupper towupper_l trunc truncate truncf truncl
tss_create tss_delete tss_get tss_set ttyname ttyname_r tzset ungetc ungetwc unlink unlinkat
unsetenv uselocale vdprintf vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf
vsscanf vswprintf vswscanf vwprintf vwscanf wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat
wcschr wcscmp wcscoll wcscoll_l wcscpy wcscspn wcsdup wcsftime wcslen wcsncasecmp wcsncasecmp_l
wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof
wcstoimax wcstok wcstol wcstold wcstoll wcstombs wcstoul wcstoull wcstoumax wcsxfrm wcsxfrm_l wctob
wctomb wctrans wctrans_l wctype wctype_l wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf write
wscanf y0 y1 yn
"""
LIBRARY = frozenset(_LIBRARY.split())
"""Functions of C's and POSIX's library that common headers declare: an exported one of that name
would not agree with these, or take their place in a program."""

_BUILT_IN = """
abs abs_diff acos acosh acospi add_sat all any asin asinh asinpi atan atan2 atan2pi atanh atanpi
barrier bit_reverse bitfield_extract_signed bitfield_extract_unsigned bitfield_insert bitselect
capture_event_profiling_info cbrt ceil clamp clz copysign cos cosh cospi create_user_event cross ctz
degrees distance dot dot_4x8packed_ss_int dot_4x8packed_su_int dot_4x8packed_us_int
dot_4x8packed_uu_uint dot_acc_sat dot_acc_sat_4x8packed_ss_int dot_acc_sat_4x8packed_su_int
dot_acc_sat_4x8packed_us_int dot_acc_sat_4x8packed_uu_uint erf erfc exp exp10 exp2 expm1 fabs
fast_distance fast_length fast_normalize fdim floor fma fmax fmin fmod fract frexp hadd hypot ilogb
is_valid_event is_valid_reserve_id isequal isfinite isgreater isgreaterequal isinf isless
islessequal islessgreater isnan isnormal isnotequal isordered isunordered ldexp length lgamma
lgamma_r log log10 log1p log2 logb mad mad24 mad_hi mad_sat max maxmag mem_fence min minmag mix modf
mul24 mul_hi nan ndrange_1D ndrange_2D ndrange_3D nextafter normalize popcount pow pown powr
prefetch printf radians release_event remainder remquo retain_event rhadd rint rootn rotate round
rsqrt select set_user_event_status shuffle shuffle2 sign signbit sin sincos sinh sinpi smoothstep
sqrt step sub_sat tan tanh tanpi tgamma trunc upsample wait_group_events
"""
BUILT_IN = frozenset(_BUILT_IN.split())
"""Built-in functions of OpenCL C, whose names no function there may have."""

BUILT_IN_FAMILIES = re.compile(
    r"(as|convert)_(u?(char|short|int|long)|half|float|double|size_t|u?intptr_t|ptrdiff_t)\w*"
    r"|(native|half|atom|atomic|work_group|sub_group|intel|amd|arm|async|enqueue|cluster)_\w+"
    r"|get_(fence|global|local|group|num|work|sub|enqueued|max|image|fence|kernel|default|pipe)(_\w+)?"
    r"|v(load|store)a?(_half)?\d*(_rt[enpz])?|(read|write)_(image|pipe|mem)\w*"
)
"""Families of these, with types and numbers in their names."""
