# SPDX-License-Identifier: Apache-2.0
"""A plugin with a language: assignments, `print` and `while`, line by line, over 64-bit integers.

n = 10
while n
  print n * n
  n = n - 1
end
"""

import re

from ferryvm.front_end import FrontEnd
from ferryvm.hooks import LanguageEntry, hookimpl
from ferryvm.isa import BY_MNEMONIC, I64
from ferryvm.listing import FunctionListing, Label, Line, Listing
from ferryvm.program import HostImport, Signature, Static
from ferryvm.source import SourceText

TOKEN = re.compile(r"\s*(?:(\d+)|([a-z]\w*)|(\S))")
OPERATIONS = {"+": ("add", 1), "-": ("sub", 1), "*": ("mul", 2), "/": ("div_s", 2)}
KEYWORDS = ("print", "while", "end")


class Compiler:
    """One text on its way to a listing."""

    def __init__(self, text, file):
        self.source = SourceText(text, file)
        self.items, self.statics, self.open = [], {}, []

    def listing(self):
        for number, line in enumerate(self.source.lines, start=1):
            self.line = number
            self.tokens = [
                (m[1] or m[2] or m[3], m.start(m.lastindex) + 1)
                for m in TOKEN.finditer(line.partition("#")[0])
            ]
            self.at = 0
            if self.tokens:
                self.statement()
        for line, column in self.open:
            self.source.fault(line, column, "this while has no end", len("while"))
        self.source.check()
        self.line = len(self.source.lines)
        self.emit("halt", column=1)
        main = FunctionListing("main", items=self.items)
        hosts = [HostImport("print_i64", Signature((I64,)))]
        return Listing([main], [Static(name, I64) for name in self.statics], hosts=hosts)

    def emit(self, mnemonic, operand=None, column=None):
        place = self.source.position(self.line, column or self.tokens[self.at - 1][1])
        self.items.append(Line(BY_MNEMONIC[mnemonic], operand, place))

    def fault(self, message):
        text, column = self.tokens[self.at] if self.at < len(self.tokens) else ("", self.end())
        self.source.fault(self.line, column, message, len(text))
        self.at = len(self.tokens) + 1  # the rest of the line says nothing any more

    def end(self):
        text, column = self.tokens[-1]
        return column + len(text)

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1][0] if self.at <= len(self.tokens) else ""

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def statement(self):
        word = self.next()
        if word == "print":
            self.expression(0)
            self.emit("host", "print_i64", column=self.tokens[0][1])
        elif word == "while":
            self.open.append((self.line, self.tokens[0][1]))
            self.items.append(Label(f"top{self.line}"))
            self.expression(0)
            self.emit("i64.eqz")
            self.emit("jump_if", f"out{self.line}")
        elif word == "end" and self.open:
            line, _ = self.open.pop()
            self.emit("jump", f"top{line}")
            self.items.append(Label(f"out{line}"))
        elif word.isidentifier() and word not in KEYWORDS and self.peek() == "=":
            self.next()
            self.expression(0)
            self.emit("static.set", self.statics.setdefault(word, len(self.statics)))
        else:
            self.at = 0
            self.fault("an end without a while" if word == "end" else "no statement begins so")
        if self.at < len(self.tokens):
            self.fault("this is too much for a statement")

    def expression(self, level):
        word = self.peek()
        if word.isdigit():
            self.next()
            self.emit("i64.const", int(word) & (1 << 64) - 1)
        elif word in self.statics:
            self.next()
            self.emit("static.get", self.statics[word])
        else:
            self.fault(f"no variable {word!r}" if word.isidentifier() else "a value is missing")
        while self.peek() in OPERATIONS and OPERATIONS[self.peek()][1] > level:
            name, above = OPERATIONS[self.next()]
            column = self.tokens[self.at - 1][1]
            self.expression(above)
            self.emit(f"i64.{name}", column=column)


@hookimpl
def ferryvm_languages():
    front_end = FrontEnd(lambda text, file: Compiler(text, file).listing())
    return [LanguageEntry("lark", (".lark",), lambda: front_end, "lines over 64-bit integers")]
