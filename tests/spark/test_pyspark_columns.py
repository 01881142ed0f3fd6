"""PySpark expressions evaluated in Python, compared with Spark's own evaluation."""

import math
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from ottla.streams.expressions.columns import Column, OfSpark
from ottla.streams.expressions.pyspark_columns import of_pyspark
from ottla.streams.expressions.spark_functions import LAZY, LOOSE, STRICT

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]

_SCHEMA = (
    "key string, value struct<i: bigint, j: bigint, n: int, x: double, y: double, s: string, t: string, "
    "f: boolean, a: array<bigint>, b: binary, inner: struct<Name: string>>"
)
_INTS = (0, 1, -1, 7, -7, 13, 1 << 40, (1 << 63) - 1, -(1 << 63), None)
_FLOATS = (0.0, -0.0, 1.5, -2.5, 0.125, 1e7, 123456.789, 1e-4, 1e300, math.inf, -math.inf, math.nan)
_TEXTS = (
    "",
    "abc",
    "Abc Def",
    " 42 ",
    "-7",
    "1.5e3",
    "true",
    "a,b,,c,",
    "straße ÄÖ",
    "ab\nab\n",
    "100%",
    "a_b",
    "😀x1",
    None,
)


def _rows() -> list[tuple[str | None, dict[str, Any] | None]]:
    """Return rows that combine every value with several others."""
    rows: list[tuple[str | None, dict[str, Any] | None]] = [("none", None)]
    for number in range(140):
        text = _TEXTS[number % len(_TEXTS)]
        value = {
            "i": _INTS[number % len(_INTS)],
            "j": (3, -2, 0, None, 64, 1 << 62)[number % 6],
            "n": (0, 1, 2, 3, -1, -3, None)[number % 7],
            "x": _FLOATS[number % len(_FLOATS)],
            "y": (2.0, -0.5, 0.0, None, math.nan)[number % 5],
            "s": text,
            "t": ("a", "b", "", "ab", "%", None, ",", "A", " ")[number % 9],
            "f": (True, False, None)[number % 3],
            "a": ([1, 2, 3], [], None, [7, None])[number % 4],
            "b": (b"", b"ab\xff", None)[number % 3],
            "inner": {"Name": text},
        }
        rows.append((text, value))
    return rows


_SQL = """
value.i + value.j
value.i - value.j
value.i * value.j
value.x + value.i
value.x - value.y
value.x * value.y
value.i / value.j
value.x / value.y
value.i % value.j
value.x % value.y
value.i div value.j
pmod(value.i, value.j)
pmod(value.x, value.y)
-value.i
-value.x
+value.i
abs(value.i)
abs(value.x)
try_add(value.i, value.j)
try_subtract(value.i, value.j)
try_multiply(value.i, value.j)
try_divide(value.i, value.j)
try_mod(value.i, value.j)
value.i = value.j
value.x = value.y
value.i < value.x
value.x >= value.y
value.x <= value.i
value.i > value.j
value.s < value.t
value.s <> value.t
value.s != 'abc'
value.f = true
value.s <=> value.t
value.x <=> value.y
value.i = 7
value.x > 1
value.x > 2.5
value.i > 2.5
value.x * 2.5
' 42 ' = value.i
value.f and value.i > 0
value.f or value.x > 0
not value.f
not (value.f and value.i / value.i = 1)
value.j = 0 or value.i % value.j = 1
value.i & value.j
value.i | value.j
value.i ^ value.j
~value.i
value.i in (1, 7, 13)
value.i in (1, null)
value.s not in ('abc', 'true')
value.i between 0 and 13
value.s is null
value.s is not null
isnull(value.x)
isnotnull(value.x)
isnan(value.x)
nanvl(value.x, value.y)
coalesce(value.y, value.x, 1.0)
coalesce(value.i, 0.5D)
nvl(value.s, 'x')
ifnull(value.i, 0)
nvl2(value.s, value.i, value.j)
nullif(value.i, value.j)
greatest(value.i, value.j, 5)
least(value.i, value.x)
greatest(value.x, value.y)
if(value.i > 0, 'plus', 'minus')
case when value.i > 0 then 1 when value.i < 0 then -1 else 0 end
case when value.i > 0 then 1 when value.i < 0 then 0.5D end
case value.s when 'abc' then 'first' when '' then 'empty' end
ceil(value.x)
floor(value.x)
ceiling(value.i)
round(value.x)
round(value.x, 2)
round(value.x, -2)
round(value.i, -1)
bround(value.x, 1)
bround(value.x)
sqrt(value.x)
cbrt(value.x)
exp(value.y)
expm1(value.x)
ln(value.x)
log(2, value.x)
log(value.x)
log10(value.x)
log2(value.x)
log1p(value.x)
pow(value.x, value.y)
power(value.i, 2)
pow(value.y, -1)
pow(-10.0D, value.n)
pow(-0.0D, value.n)
hypot(value.x, value.y)
sin(value.x)
cos(value.x)
tan(value.x)
asin(value.y)
acos(value.y)
atan(value.x)
atan2(value.x, value.y)
sinh(value.x)
cosh(value.x)
tanh(value.x)
degrees(value.y)
radians(value.x)
sign(value.x)
signum(value.i)
upper(value.s)
lower(value.s)
ucase(value.i)
trim(value.s)
trim(both 'a,' from value.s)
ltrim(value.s)
ltrim('a', value.s)
rtrim(value.s)
rtrim(',c', value.s)
btrim(value.s, 'ab')
trim('a', value.s)
length(value.s)
char_length(value.i)
length(value.b)
octet_length(value.s)
bit_length(value.s)
value.s || value.t
concat(value.s, value.i, value.f)
concat(value.s, value.x)
concat(value.b, value.b)
concat(value.a, value.a)
concat_ws('-', value.s, value.t, value.i)
concat_ws(value.t, 'x', 'y')
contains(value.s, value.t)
startswith(value.s, value.t)
endswith(value.s, value.t)
value.s like 'a%'
value.s like '%b\\nab%'
value.s like '100!%' escape '!'
value.s like 'a\\\\_b'
value.s like '_bc'
value.s ilike 'ABC'
value.s rlike '^[0-9]'
value.s rlike 'b$'
value.s rlike 'a.a'
value.s rlike '^\\\\s*-?\\\\d+\\\\s*$'
regexp_like(value.s, '(a|,){2}')
regexp_extract(value.s, '([a-z]+)(,|_)?', 2)
regexp_extract(value.s, '(\\\\w+)')
regexp_extract(value.s, 'b', 0)
regexp_replace(value.s, '([ab])(.)', '<$2$1>')
regexp_replace(value.s, '\\\\d', '')
split(value.s, ',')
split(value.s, ',', 2)
split(value.s, '[ab]', 0)
split(value.s, ',')[0]
replace(value.s, 'ab', 'x')
replace(value.s, value.t, 'X')
replace(value.s, 'a')
translate(value.s, 'abc', 'xy')
reverse(value.s)
reverse(value.a)
repeat(value.s, value.n)
lpad(value.s, 5, 'xy')
lpad(value.s, 3)
lpad(value.s, value.n, value.t)
rpad(value.s, 5, 'xy')
rpad(value.s, value.n, value.t)
instr(value.s, value.t)
locate(value.t, value.s)
locate('a', value.s, value.n)
position('b' in value.s)
ascii(value.s)
chr(value.i)
char(value.j + 60)
substring(value.s, 2)
substring(value.s, value.n, 2)
substr(value.s, -2, value.n)
substring(value.s from 2 for 3)
left(value.s, value.n)
right(value.s, value.n)
substring_index(value.s, ',', value.n)
split_part(value.s, ',', 2)
split_part(value.s, value.t, -1)
md5(value.s)
sha(value.s)
sha1(value.b)
sha2(value.s, 256)
sha2(value.s, 0)
sha2(value.b, 512)
sha2(value.s, 7)
crc32(value.s)
base64(value.b)
size(value.a)
cardinality(value.a)
array_contains(value.a, 7)
array_contains(value.a, value.i)
element_at(value.a, 1)
element_at(value.a, -1)
get(value.a, value.n)
value.a[0]
array(value.i, value.j)
value.inner.Name
value.inner.name
VALUE.I + 1
key
cast(value.i as string)
cast(value.x as string)
cast(value.f as string)
cast(value.b as string)
cast(value.s as bigint)
cast(value.s as double)
cast(value.s as boolean)
cast(value.s as binary)
cast(value.x as bigint)
cast(value.i as int)
cast(value.j as tinyint)
cast(value.i as double)
cast(value.f as bigint)
cast(value.i as boolean)
cast(value.x as boolean)
try_cast(value.s as int)
try_cast(value.s as double)
try_cast(value.x as smallint)
try_cast(value.s as boolean)
struct(value.i, value.s as text, value.x * 2)
named_struct('a', value.i, 'b', value.s)
x'6162'
"""


def _expressions() -> list[SparkColumn]:
    return [
        *map(F.expr, _SQL.split("\n")[1:-1]),
        F.col("value.i") * 2 > F.lit(10),
        F.col("value")["i"] + F.col("value").getField("j"),
        F.col("value.a").getItem(0),
        F.when(F.col("value.i") > 0, F.col("value.s"))
        .when(F.col("value.f"), "f")
        .otherwise(F.lit("o")),
        F.col("value.i").isin([1, 7]),
        F.col("value.i").between(0, 7),
        F.col("value.s") != "abc",
        F.col("value.s").substr(2, 2),
        F.trim(F.col("value.s"), F.lit("ab")),
        F.substring("value.s", 2, 2),
        F.round("value.x", 1),
        F.col("value.s").like("a%") | F.col("value.s").ilike("%DEF"),
        F.col("value.s").startswith("a") & ~F.col("value.s").endswith("c"),
        F.col("value.s").rlike("[a-c]+"),
        F.col("value.x") ** 2,
        -F.col("value.x"),
        F.col("value.s").eqNullSafe(F.lit(None)),
        F.struct(F.col("value.i").alias("n"), F.lit(1.5).alias("x"), "key"),
        F.coalesce(F.col("value.i"), F.lit(0.5)),
        F.concat_ws("/", "key", F.col("value.t")),
        F.col("value.s").try_cast("bigint"),
        F.lit(None),
        F.lit(b"ab"),
        F.lit(True),
        F.regexp_replace("value.s", "b", "$0$0"),
    ]


def _plain(value: Any) -> Any:
    """Convert a result of Spark to plain Python values."""
    if isinstance(value, Row):
        return {name: _plain(each) for name, each in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one):
        return math.isclose(one, other, rel_tol=1e-14) and (one != 0 or str(one) == str(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return [*one] == [*other] and all(_same(one[name], other[name]) for name in one)
    return type(one) is type(other) and (repr(one) == repr(other))


def _answers(expression: OfSpark, rows: list[Any]) -> tuple[dict[int, Any], dict[int, Exception]]:
    """Return Python's result for each row: a value or an error."""
    values: dict[int, Any] = {}
    errors: dict[int, Exception] = {}
    for index, (key, value) in enumerate(rows):
        try:
            values[index] = expression(key, value)
        except (ArithmeticError, ValueError, TypeError, IndexError) as error:
            errors[index] = error
    return values, errors


def _frame(spark: SparkSession, rows: list[Any]) -> DataFrame:
    placed = [(index, *row) for index, row in enumerate(rows)]
    return spark.createDataFrame(placed, f"place int, {_SCHEMA}").cache()


def test_python_and_spark_yield_the_same_results(spark: SparkSession) -> None:
    """Each function is applied to many values, including nulls; errors are compared, too."""
    rows = _rows()
    frame, columns = _frame(spark, rows), _expressions()
    expressions = [of_pyspark(expression) for expression in columns]
    assert [
        str(expression) + ": " + expression.why
        for expression in expressions
        if expression.meaning is None
    ] == []
    responses = [_answers(expression, rows) for expression in expressions]
    selected = [
        (F.when(~F.col("place").isin([*errors]), column) if errors else column).alias(f"c{number}")
        for number, (column, (_, errors)) in enumerate(zip(columns, responses, strict=True))
    ]
    actual = {row["place"]: row for row in frame.select("place", *selected).collect()}
    differ = [
        f"{expressions[number]} of {rows[row_number]}: {value!r}, Spark {_plain(actual[row_number][f'c{number}'])!r}"
        for number, (values, _) in enumerate(responses)
        for row_number, value in values.items()
        if not _same(value, _plain(actual[row_number][f"c{number}"]))
    ]
    assert differ == []
    for column, (_, errors) in zip(columns, responses, strict=True):
        for row_number in [*errors][:1]:
            with pytest.raises(PySparkException):
                frame.where(F.col("place") == row_number).select(column).collect()


def test_every_function_is_compared(spark: SparkSession) -> None:
    """The comparison above covers all supported functions."""
    del spark
    used = set()
    pending = [converted.meaning for converted in map(of_pyspark, _expressions())]
    while pending:
        column = pending.pop()
        if column is not None:
            used |= {column.operands[0]} if column.operation == "spark" else set()
            pending += [operand for operand in column.operands if isinstance(operand, Column)]
    assert (STRICT.keys() | LOOSE.keys() | LAZY.keys()) - used == set()
