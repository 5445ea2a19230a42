"""Traces as files: what is written is read back exactly, what is no trace says so in a sentence."""

import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.models.copied_log import UNCLEAN
from tests.support.traces import violation

from isr_lang.nodes import literal
from isr_lang.types import (
    BOOL,
    COUNT,
    BoolType,
    ChoiceType,
    MapType,
    MaybeType,
    NumberType,
    Scalar,
    SeqType,
    SetType,
    SortType,
    Type,
)
from isr_trace.codec import decode, encode
from isr_trace.itf import itf_text, read_itf, trace_from, trace_from_text, write_itf
from isr_trace.show import plain_text, story
from isr_trace.trace import ActionNote, Minimisation, Step, Trace, TraceError

Written = dict[str, dict[str, object]]

# Random types and values of them


@st.composite
def numbers(draw: st.DrawFn) -> NumberType:
    low, size = draw(st.integers(0, 2)), draw(st.integers(1, 4))
    return NumberType(f"N{low}to{low + size - 1}", low, literal(low + size - 1, COUNT))


SORTS = st.integers(1, 4).map(lambda n: SortType(f"S{n}", literal(n, COUNT), n % 2 == 0, f"s{n}_"))
CHOICES = st.integers(1, 4).map(lambda n: ChoiceType(f"C{n}", tuple("ABCD"[:n])))
SCALARS: st.SearchStrategy[Scalar] = st.one_of(st.just(BOOL), numbers(), SORTS, CHOICES)
TYPES: st.SearchStrategy[Type] = st.recursive(
    st.one_of(
        SCALARS,
        SCALARS.map(MaybeType),
        SCALARS.map(SetType),
        st.builds(SeqType, numbers(), SCALARS),
    ),
    lambda inner: st.builds(MapType, SCALARS, inner),
    max_leaves=3,
)


def bounds(type: Scalar) -> tuple[int, int]:
    match type:
        case BoolType():
            return 0, 1
        case NumberType():
            assert type.high is not None
            return type.low, cast("int", type.high.attr)
        case SortType():
            return 0, cast("int", type.size.attr) - 1
        case ChoiceType():
            return 0, len(type.members) - 1


def values(type: Type) -> st.SearchStrategy[object]:
    match type:
        case BoolType():
            return st.booleans()
        case NumberType() | SortType() | ChoiceType():
            return st.integers(*bounds(type))
        case MaybeType():
            low, high = bounds(type.of)
            return st.integers(0, high - low + 1)
        case SetType():
            low, high = bounds(type.of)
            return st.integers(0, 2 ** (high - low + 1) - 1)
        case MapType():
            low, high = bounds(type.key)
            return st.tuples(*[values(type.value)] * (high - low + 1))
        case SeqType():
            return st.lists(values(type.of), max_size=3).map(tuple)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    types = draw(st.dictionaries(st.from_regex("[a-z_]{1,6}", fullmatch=True), TYPES, min_size=1, max_size=4))
    parameters = draw(st.dictionaries(st.from_regex("[a-z]{1,3}", fullmatch=True), TYPES, max_size=2))
    note = ActionNote(parameters, draw(st.text(max_size=20)))

    def some(of: dict[str, Type]) -> dict[str, object]:
        return {name: draw(values(type)) for name, type in of.items()}

    length = draw(st.integers(0, 3))
    peers = st.sampled_from(("", "r2"))
    steps = tuple(Step("acts", some(parameters), "r1", draw(peers)) for _ in range(length))
    return Trace(
        design="a design",
        model_hash="0123456789abcdef",
        constants={"n": draw(st.integers(0, 9)), "on": draw(st.booleans()), "kind": "all"},
        property_name="holds",
        kind="always",
        verdict="VIOLATED",
        promise=draw(st.text(max_size=20)),
        variables=dict(types),
        actions={"acts": note} if steps else {},
        initial=some(parameters),
        initial_types=parameters,
        steps=steps,
        states=tuple(some(types) for _ in range(length + 1)),
        minimisation=draw(st.sampled_from((None, Minimisation(9, length, True)))),
        loop=draw(st.sampled_from((None, 0))),
    )


@pytest.mark.long
@given(traces())
def test_a_trace_is_read_back_exactly(trace: Trace) -> None:
    again = trace_from(json.loads(itf_text(trace)))
    assert again == trace
    assert itf_text(again) == itf_text(trace)


@given(TYPES.flatmap(lambda type: st.tuples(st.just(type), values(type))))
def test_a_value_is_read_back_exactly(typed: tuple[Type, object]) -> None:
    type, value = typed
    again = decode(json.loads(json.dumps(encode(value, type))), type)
    assert again == value


@pytest.mark.long
@given(traces())
def test_every_trace_can_be_shown(trace: Trace) -> None:
    assert plain_text(story(trace, full=True))


@pytest.mark.parametrize("number", [2**53 - 1, 2**53, -(2**53), 10**40])
def test_a_number_that_a_double_cannot_hold_is_a_bigint(number: int) -> None:
    type = NumberType("N", 0, literal(3, COUNT))
    written = encode(number, type)
    assert isinstance(written, dict) is (abs(number) >= 2**53)
    assert decode(written, type) == number


# The file


def test_the_file_is_itf_with_ours_under_meta(tmp_path: Path) -> None:
    trace = violation(UNCLEAN)
    write_itf(trace, tmp_path / "t.itf.json")
    written = cast("Written", json.loads((tmp_path / "t.itf.json").read_text(encoding="utf-8")))
    assert set(written) == {"#meta", "vars", "states"}
    states = cast("list[Written]", written["states"])
    assert [s["#meta"] for s in states] == [{"index": i} for i in range(len(states))]
    assert all(list(s)[1:] == cast("list[str]", written["vars"]) for s in states)
    assert written["#meta"]["schema"] == "insync/trace/1"
    assert states[0]["log"] == {"#map": [["r1", []], ["r2", []]]}
    assert states[0]["leader"] == {"tag": "Some", "value": "r1"}
    assert states[0]["isr"] == {"#set": ["r1", "r2"]}


def test_the_same_trace_is_the_same_bytes_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    trace, path = violation(UNCLEAN), tmp_path / "t.itf.json"
    write_itf(trace, path)
    first = path.read_bytes()
    write_itf(read_itf(path), path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["t.itf.json"]


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(TraceError, match=r"^cannot write .*t\.itf\.json: \w+"):
        write_itf(violation(UNCLEAN), tmp_path / "file" / "t.itf.json")


# Broken files


def changed(path: str, value: object) -> str:
    """The text of a good trace with one entry replaced; `...` removes it."""
    document = cast("dict[str, object]", json.loads(itf_text(violation(UNCLEAN))))
    *way, last = path.split("/")
    place = document
    for key in way:
        inner = place[key] if key in place else cast("list[object]", place)[int(key)]
        place = cast("dict[str, object]", inner)
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("hello", "not JSON at line 1"),
        ("Error: Invariant Inv is violated.\nState 1: <Initial predicate>\n/\\ x = 0\n", "it is TLC's text"),
        ("1: <Initial predicate>\n/\\ x = 0\n", "it is TLC's text"),
        ("---------------- MODULE counterexample ----------------\nEXTENDS Spec\n", "ends in .itf.json"),
        ("[]", "should be an object"),
        ("{}", "has no states"),
        ('{"states": []}', "has no states"),
        ('{"states": [{"#meta": {"index": 0}}]}', "has no variables"),
        ('{"states": [4]}', "state 0 should be an object"),
        ("[" * 100_000, "not JSON that anyone could read"),
        (changed("#meta/schema", "insync/trace/2"), "written by another version of insync"),
        (changed("#meta/design", ""), "should name a design"),
        (changed("#meta/steps", ...), "#meta.steps should be a list"),
        (changed("#meta/steps", []), "do not fit 0 steps"),
        (changed("#meta/actions", {}), "is not explained"),
        (changed("#meta/types/Replica", ...), "the type Replica is not explained"),
        (changed("#meta/types/Replica/kind", "colour"), "unknown kind 'colour'"),
        (changed("#meta/variables/log", "Map[Replica"), "is not a type"),
        (changed("#meta/variables/log", ...), "state 0 should have values for exactly"),
        (changed("states/2/log", ...), "state 2 should have values for exactly"),
        (changed("states/2/log", 7), "'log' of state 2: a Map"),
        (changed("states/2/leader", {"tag": "Some", "value": "r9"}), "'leader' of state 2: \"r9\" is not a"),
        (changed("states/2/acked", {"#set": [10**12]}), "out of the range of Record"),
        (changed("states/2/next", {"#bigint": "9" * 5000}), "is not a Record"),
    ],
)
def test_a_broken_file_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.itf.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceError) as error:
        read_itf(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_not_text_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_itf(tmp_path / "none.itf.json")
    (tmp_path / "t").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="not text in UTF-8"):
        read_itf(tmp_path / "t")


WHOLE = itf_text(violation(UNCLEAN))


@given(st.integers(1, len(WHOLE.rstrip()) - 1))
def test_a_truncated_file_says_that_it_is_cut_off(length: int) -> None:
    with pytest.raises(TraceError, match="cut off: it ends in the middle, at line"):
        trace_from_text(WHOLE[:length])


@given(st.integers(0, len(WHOLE) - 1), st.characters(codec="ascii"))
def test_a_damaged_file_is_a_trace_or_one_sentence(position: int, character: str) -> None:
    said = ""
    try:
        trace_from_text(WHOLE[:position] + character + WHOLE[position + 1 :])
    except TraceError as error:
        said = str(error)
    assert "\n" not in said


def test_a_trace_of_another_model_version_is_refused_when_asked_for_this_one(tmp_path: Path) -> None:
    path, trace = tmp_path / "t.itf.json", violation(UNCLEAN)
    write_itf(trace, path)
    assert read_itf(path, model_hash=trace.model_hash) == trace
    with pytest.raises(TraceError, match=rf"another version of unclean \(model hash {trace.model_hash}, now 00"):
        read_itf(path, model_hash="00")


# Traces of other programs

QUINT = """
{"#meta": {"format": "ITF", "source": "bank.qnt"}, "vars": ["bal", "p", "p"], "states": [
  {"#meta": {"index": 0}, "bal": {"#map": [["ann", {"#bigint": "0"}], ["bob", {"#bigint": "3"}]]},
   "p": {"x": {"tag": "None", "value": {"#tup": []}}, "s": {"#set": ["a"]}, "l": [1, 2]}},
  {"#meta": {"index": 1}, "bal": {"#map": [["ann", {"#bigint": "2"}], ["bob", {"#bigint": "3"}]]},
   "p": {"x": {"tag": "Some", "value": {"#bigint": "7"}}, "s": {"#set": ["a", "b"]}, "l": [1]}}], "loop": 0}
"""


def test_a_foreign_trace_opens_as_variables_only(tmp_path: Path) -> None:
    (tmp_path / "q.itf.json").write_text(QUINT, encoding="utf-8")
    trace = read_itf(tmp_path / "q.itf.json")
    assert trace.foreign
    shown = plain_text(story(trace))
    for line in ("bal  (ann: 0, bob: 3)", "bal[ann]  0 -> 2", "p.x       none -> 7", "p.s       + b", "- 2"):
        assert line in shown
    with pytest.raises(TraceError, match="another program"):
        read_itf(tmp_path / "q.itf.json", model_hash="00")
    assert trace_from(json.loads(itf_text(trace))) == trace
