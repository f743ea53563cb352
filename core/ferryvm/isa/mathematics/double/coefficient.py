# SPDX-License-Identifier: Apache-2.0
"""Coefficients of the functions of f64, written by `python -m tests.mathematics.double`."""

from __future__ import annotations

LN2 = float.fromhex("0x1.62e42fefa39efp-1")
LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LOG2_E_REST = float.fromhex("0x1.777d0ffda0d24p-56")
SIXTEENTHS_E = float.fromhex("0x1.71547652b82fep+4")
LN2_16_HIGH = float.fromhex("0x1.62e42fefa3800p-5")
LN2_16_LOW = float.fromhex("0x1.ef35793c76730p-49")
LOG10_2_HIGH = float.fromhex("0x1.34413509f7800p-2")
LOG10_2_LOW = float.fromhex("0x1.fef311f12b358p-46")
LOG10_E = float.fromhex("0x1.bcb7b1526e50ep-2")
LOG10_E_REST = float.fromhex("0x1.95355baaafad3p-57")
PI_2 = float.fromhex("0x1.921fb54442d18p+0")
PI_2_REST = float.fromhex("0x1.1a62633145c07p-54")
PI_2_MIDDLE = float.fromhex("0x1.1a62633100000p-54")
PI_2_LOW = float.fromhex("0x1.1701b839a2520p-88")
TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
ERF_0 = float.fromhex("0x1.20dd750429b6dp+0")
ERF_0_REST = float.fromhex("0x1.1ae3a914fed80p-56")
ERF_1 = float.fromhex("-0x1.812746b0379e7p-2")
ERF_1_REST = float.fromhex("0x1.ee12e49cab700p-57")
ERFC_POLE = float.fromhex("0x1.2000000000000p-1")
ERFC_CENTER = float.fromhex("0x1.4000000000000p-1")
ERFC_SCALE = float.fromhex("0x1.1000000000000p+3")
ERFC_SHIFT = float.fromhex("0x1.4600000000000p+0")

EXP = (
    float.fromhex("0x1.0000000000000p-1"),
    float.fromhex("0x1.5555555555557p-3"),
    float.fromhex("0x1.5555555555558p-5"),
    float.fromhex("0x1.11111111100dep-7"),
    float.fromhex("0x1.6c16c16c15202p-10"),
    float.fromhex("0x1.a01a01abe67fcp-13"),
    float.fromhex("0x1.a01a01acf8d66p-16"),
    float.fromhex("0x1.71de023671187p-19"),
    float.fromhex("0x1.27e4ccd2a742ep-22"),
    float.fromhex("0x1.af4ddf2fe8622p-26"),
    float.fromhex("0x1.1f8b4469a96c9p-29"),
)

EXP_SIXTEENTH = (
    float.fromhex("0x1.0000000000001p-1"),
    float.fromhex("0x1.5555555555557p-3"),
    float.fromhex("0x1.55555554e9465p-5"),
    float.fromhex("0x1.11111110abadbp-7"),
    float.fromhex("0x1.6c17ed4cf2892p-10"),
    float.fromhex("0x1.a01b65096352ep-13"),
)

EXP2_SIXTEENTH = (
    float.fromhex("0x1.ebfbdff82c590p-3"),
    float.fromhex("0x1.c6b08d704a0c2p-5"),
    float.fromhex("0x1.3b2ab6fb41211p-7"),
    float.fromhex("0x1.5d87fe7824abap-10"),
    float.fromhex("0x1.430a1d09153d7p-13"),
    float.fromhex("0x1.ffcdb17eaac21p-17"),
)

SINH = (
    float.fromhex("0x1.5555555555555p-3"),
    float.fromhex("0x1.1111111111111p-7"),
    float.fromhex("0x1.a01a01a0196aep-13"),
    float.fromhex("0x1.71de3a5aa7075p-19"),
    float.fromhex("0x1.ae642c86b5364p-26"),
    float.fromhex("0x1.61bfa2fc917ebp-33"),
)

COSH = (
    float.fromhex("0x1.5555555555555p-5"),
    float.fromhex("0x1.6c16c16c16c17p-10"),
    float.fromhex("0x1.a01a01a019b64p-16"),
    float.fromhex("0x1.27e4fb7a27274p-22"),
    float.fromhex("0x1.1eed7a03ebb04p-29"),
    float.fromhex("0x1.943288910e073p-37"),
)

SIN = (
    float.fromhex("0x1.5555555555555p-2"),
    float.fromhex("0x1.1111111111110p-1"),
    float.fromhex("0x1.a01a01a019939p-4"),
    float.fromhex("0x1.71de3a5460acbp-7"),
    float.fromhex("0x1.ae645412e9478p-11"),
    float.fromhex("0x1.61217f254d0dap-15"),
    float.fromhex("0x1.ab17e1eceb522p-20"),
)

COS = (
    float.fromhex("0x0.0p+0"),
    float.fromhex("0x1.5555555555555p-3"),
    float.fromhex("0x1.6c16c16c16967p-7"),
    float.fromhex("0x1.a01a019f4ec8ap-12"),
    float.fromhex("0x1.27e4fa17f5dbfp-17"),
    float.fromhex("0x1.1eeb6902f16c1p-23"),
    float.fromhex("0x1.907db409ba778p-30"),
)

TAN = (
    float.fromhex("-0x1.5555555555555p-2"),
    float.fromhex("0x1.1111111111088p-1"),
    float.fromhex("0x1.ba1ba1ba2b7f8p-2"),
    float.fromhex("0x1.664f487cf16e2p-2"),
    float.fromhex("0x1.226e367b5fa03p-2"),
    float.fromhex("0x1.d6d38f457a7a9p-3"),
    float.fromhex("0x1.7da84eca044acp-3"),
    float.fromhex("0x1.3517bd7f1eaa0p-3"),
    float.fromhex("0x1.fa1f3e8e94710p-4"),
    float.fromhex("0x1.781d7f5d427c4p-4"),
    float.fromhex("0x1.d774a5d6a3236p-4"),
    float.fromhex("-0x1.8d5d1be0a127ap-5"),
    float.fromhex("0x1.3874507832264p-2"),
    float.fromhex("-0x1.39a77048bc6f8p-2"),
    float.fromhex("0x1.1f9c22950e6d8p-2"),
)

LOG = (
    float.fromhex("0x1.5555555555555p-1"),
    float.fromhex("0x1.9999999999a39p-2"),
    float.fromhex("0x1.2492492476949p-2"),
    float.fromhex("0x1.c71c7201b2936p-3"),
    float.fromhex("0x1.745cf8e2989cap-3"),
    float.fromhex("0x1.3b1c3bf7c4ad1p-3"),
    float.fromhex("0x1.0fbdf2537cdc6p-3"),
    float.fromhex("0x1.0c09d03c3618bp-3"),
)

ERF = (
    float.fromhex("0x1.ce2f21a042be2p-4"),
    float.fromhex("-0x1.b82ce31288b22p-6"),
    float.fromhex("0x1.565bcd0e679dfp-8"),
    float.fromhex("-0x1.c02db3fe50f27p-11"),
    float.fromhex("0x1.f9a32645becbfp-14"),
    float.fromhex("-0x1.f4d236ab8f049p-17"),
    float.fromhex("0x1.b9e200e1972dbp-20"),
    float.fromhex("-0x1.5f134217f9402p-23"),
    float.fromhex("0x1.f36e2dda58628p-27"),
    float.fromhex("-0x1.10cd3d5be1a91p-30"),
)

ERFC = (
    float.fromhex("0x1.ea354bc39e361p-9"),
    float.fromhex("0x1.ff46bdb1ba287p-5"),
    float.fromhex("0x1.5b8408e9742bfp-9"),
    float.fromhex("-0x1.a19b5c12a24c0p-7"),
    float.fromhex("-0x1.4898e0bb25b30p-7"),
    float.fromhex("-0x1.2994d226c47bep-8"),
    float.fromhex("-0x1.536df9eef95ebp-10"),
    float.fromhex("-0x1.5b40678c6575ap-13"),
    float.fromhex("0x1.18bf6884de219p-15"),
    float.fromhex("0x1.25499463cca23p-16"),
    float.fromhex("0x1.31612f54e0745p-21"),
    float.fromhex("-0x1.48167c811b500p-20"),
    float.fromhex("-0x1.595eccc3d30bfp-23"),
    float.fromhex("0x1.88d16936b84a8p-24"),
    float.fromhex("0x1.2bee75d463f16p-26"),
    float.fromhex("-0x1.196ecc8226b7bp-27"),
    float.fromhex("-0x1.ae4846510cff8p-30"),
    float.fromhex("0x1.d6beb6329e645p-31"),
    float.fromhex("0x1.fa467960b2109p-34"),
    float.fromhex("-0x1.89de6f2b6b6e9p-34"),
    float.fromhex("-0x1.70af83f8c320ap-38"),
    float.fromhex("0x1.c32955fcb3132p-38"),
    float.fromhex("-0x1.16a938022f988p-49"),
)

POW_LOG = (
    float.fromhex("0x1.5555555555555p-4"),
    float.fromhex("0x1.5555555555555p-58"),
    float.fromhex("0x1.999999999999ap-7"),
    float.fromhex("-0x1.999999999999ap-61"),
    float.fromhex("0x1.2492492492497p-9"),
    float.fromhex("0x1.c71c71c71533dp-12"),
    float.fromhex("0x1.745d1755219f4p-14"),
    float.fromhex("0x1.3b13a5192c5cfp-16"),
    float.fromhex("0x1.1115a2db98268p-18"),
    float.fromhex("0x1.e01f36bb99c5bp-21"),
    float.fromhex("0x1.d9cc1b80b48ddp-23"),
)

ATAN = (
    float.fromhex("-0x1.5555555555555p-2"),
    float.fromhex("0x1.9999999999957p-3"),
    float.fromhex("-0x1.249249248dbacp-3"),
    float.fromhex("0x1.c71c71c32f29ep-4"),
    float.fromhex("-0x1.745d1665aadeep-4"),
    float.fromhex("0x1.3b1393ab53c88p-4"),
    float.fromhex("-0x1.110e95e36f3f2p-4"),
    float.fromhex("0x1.e19b40d76946bp-5"),
    float.fromhex("-0x1.ac82cae85251bp-5"),
    float.fromhex("0x1.7501782aacb5bp-5"),
    float.fromhex("-0x1.1b8b1a0a45fb6p-5"),
    float.fromhex("0x1.0b8c70f5195f7p-6"),
)

ASIN = (
    float.fromhex("0x1.5555555555556p-3"),
    float.fromhex("0x1.3333333332e3fp-4"),
    float.fromhex("0x1.6db6db6e3eec5p-5"),
    float.fromhex("0x1.f1c71c16172a7p-6"),
    float.fromhex("0x1.6e8bb2ee1be4cp-6"),
    float.fromhex("0x1.1c4d1b9bbeaadp-6"),
    float.fromhex("0x1.c9d1fd21c9199p-7"),
    float.fromhex("0x1.780a27efa5fc5p-7"),
    float.fromhex("0x1.52f4c2c3f73cap-7"),
    float.fromhex("0x1.5fcff62b9e5c4p-8"),
    float.fromhex("0x1.20fb77485dcf6p-6"),
    float.fromhex("-0x1.f2872d6efb799p-7"),
    float.fromhex("0x1.db20b77a3b280p-6"),
)

INVERSE_ROOT = (
    float.fromhex("0x1.0000000c3d387p-1"),
    float.fromhex("0x1.7fff942658660p-2"),
    float.fromhex("0x1.3ffefb26f2ad7p-2"),
    float.fromhex("0x1.19617734e489fp-2"),
    float.fromhex("0x1.fb982a238482ap-3"),
)

POWER_TAILS = (
    float.fromhex("0x0.0p+0"),
    float.fromhex("0x1.79aa65d837b6dp-54"),
    float.fromhex("-0x1.01b15eaa59348p-55"),
    float.fromhex("0x1.68efde3a8a894p-54"),
    float.fromhex("0x1.34d754db0abb6p-55"),
    float.fromhex("0x1.59f48a72a4c6dp-55"),
    float.fromhex("0x1.690cebb7aafb0p-56"),
    float.fromhex("0x1.063e1e21c5409p-54"),
    float.fromhex("-0x1.3b3efbf5e2228p-54"),
    float.fromhex("-0x1.b32dcb94da51dp-56"),
    float.fromhex("0x1.db72fc1f0eab4p-55"),
    float.fromhex("0x1.1affc2b91ce27p-56"),
    float.fromhex("0x1.c1a7792cb3387p-55"),
    float.fromhex("0x1.36eae30af0cb3p-56"),
    float.fromhex("0x1.4a385a63d07a7p-56"),
    float.fromhex("-0x1.ff7128fd391f0p-55"),
)

TWO_OVER_PI_WORDS = (
    0x0000000028BE60DB,
    0x9391054A7F09D5F4,
    0x7D4D377036D8A566,
    0x4F10E4107F9458EA,
    0xF7AEF1586DC91B8E,
    0x909374B801924BBA,
    0x827464873F877AC7,
    0x2C4A69CFBA208D7D,
    0x4BAED1213A671C09,
    0xAD17DF904E64758E,
    0x60D4CE7D272117E2,
    0xEF7E4A0EC7FE25FF,
    0xF7816603FBCBC462,
    0xD6829B47DB4D9FB3,
    0xC9F2C26DD3D18FD9,
    0xA797FA8B5D49EEB1,
    0xFAF97C5ECF41CE7D,
    0xE294A4BA9AFED7EC,
    0x47E357421580CC11,
)

POWER_WORDS = (
    0x3FF0000000000000,
    0x3FEFB5586CF9890F,
    0x3FEF72B83C7D517B,
    0x3FEF387A6E756238,
    0x3FEF06FE0A31B715,
    0x3FEEDEA64C123422,
    0x3FEEBFDAD5362A27,
    0x3FEEAB07DD485429,
    0x3FEEA09E667F3BCD,
    0x3FEEA11473EB0187,
    0x3FEEACE5422AA0DB,
    0x3FEEC49182A3F090,
    0x3FEEE89F995AD3AD,
    0x3FEF199BDD85529C,
    0x3FEF5818DCFBA487,
    0x3FEFA4AFA2A490DA,
)
