"""The words of a stored query: what a solver reads otherwise than we do is no word of it.

Without this a mark could define a symbol of the state, and a forged file would be a proof of anything.
"""

import pytest

from isr_check.smt_words import check_words, declared_once

SYMBOLS = ("x", "f", "|two words|", "p", "a!1", "|in view|")
FORMULAS = [
    "x",
    "(and p (< x 1) (not (= |two words| (- 1))))",
    "(forall ((m Int) (|n n| Bool)) (! (=> |n n| (< m x)) :pattern ((|in view| m)) :pattern ((f x) (f m))))",
    "(let ((a!2 (+ x 1)) (a!3 x)) (let ((a!2 (* a!2 a!3))) (exists ((y Int)) (ite p (distinct y a!2) true))))",
    "(|in view|\r\n\t (- x 1))",
]
FORGERIES = {
    "a name": ("(|in view| (! 0 :named x))", "an attribute stands where none is a pattern"),
    "a name below a quantifier": ("(forall ((m Int)) (! (< m 1) :named p))", "an attribute is no pattern"),
    "a name in a pattern": ("(forall ((m Int)) (! (< m 1) :pattern ((! m :named x))))", "an attribute stands"),
    "an attribute beside a pattern": ("(forall ((m Int)) (! p :weight 0))", "an attribute is no pattern"),
    "a variable like a symbol": ("(forall ((x Int)) (< x 1))", "x is a variable, and a symbol"),
    "a variable like a symbol, in bars": ("(forall ((|x| Int)) (= |x| x))", "x is spelled in two ways"),
    "a variable in bars, the symbol not there": ("(forall ((|y| Int)) (= |y| y))", "y is spelled in two ways"),
    "a symbol in bars": ("(= |x| x)", "|x| is neither declared nor a word"),
    "a symbol without bars": ("(in view)", "in is neither declared nor a word"),
    "what nobody declares": ("(= x z)", "z is neither declared nor a word"),
    "a variable like an operator": ("(forall ((and Bool)) and)", "which is no name for a variable"),
    "a variable like an operator, in bars": ("(forall ((|true| Bool)) |true|)", "which is no name for a variable"),
    "a variable twice": ("(forall ((y Int) (|y| Bool)) (< y 1))", "which is no name for a variable, or twice"),
    "two formulas": ("x p", "it is not one formula"),
    "a half": ("(and p", "it is not one formula"),
    "no formula": ("", "it is not one formula"),
    "a bracket too many": ("(and p))", "a bracket too many"),
    "nothing": ("(and ())", "a pair of brackets has nothing in it"),
    "words that touch": ("(and p|two words|)", "two words are not apart"),
    "a blank that is none": ("(and\u00a0p p)", "a character that no query should"),
    "a letter that Python takes for a blank": ("(and\x1fp p)", "a character that no query should"),
    "half the end of a line": ("(and p\rp)", "a character that no query should"),
    "a number with a zero before it": ("(= x 01)", "01 is no word of a formula"),
    "a binary number": ("(= x #b1)", "a word that no formula has"),
    "a variable that is a place": ("(forall ((#0 Int)) p)", "a word that no formula has"),
    "a decimal": ("(= x 1.0)", "1.0 is no word of a formula"),
    "an indexed word": ("((_ is cons) x)", "_ is no word of a formula"),
    "a type": ("((as x Int))", "Int is no word of a formula"),
    "another binder": ("(lambda ((y Int)) y)", "Int is no word of a formula"),
    "a match": ("(match x ((x 1)))", "match is no word of a formula"),
    "another sort": ("(forall ((y Real)) (< y 1))", "neither Int nor Bool"),
    "a sort that is none": ("(forall ((y (_ BitVec 8))) p)", "neither Int nor Bool"),
    "a quantifier without variables": ("(forall () p)", "binds nothing, or has no body"),
    "a quantifier without a body": ("(forall ((y Int)))", "binds nothing, or has no body"),
    "half a pattern": ("(forall ((y Int)) (! p :pattern))", "an attribute is no pattern"),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_proofs_have_is_read(formula: str) -> None:
    check_words(formula, declared_once(SYMBOLS))


@pytest.mark.parametrize("what", FORGERIES)
def test_what_could_be_read_in_two_ways_is_refused(what: str) -> None:
    formula, says = FORGERIES[what]
    with pytest.raises(ValueError, match=says.replace("|", r"\|").replace("(", r"\(")):
        check_words(formula, declared_once(SYMBOLS))


@pytest.mark.parametrize("symbols", [("x", "|x|"), ("and",), ("|and|",), ("Int",), ("|:pattern|",), ("1x",), ("a\\b",)])
def test_what_cannot_be_declared_beside_the_rest(symbols: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="declares"):
        declared_once(symbols)
