"""Wrong files: each must be refused at the right place, in words that help."""

import pytest

from physsm import PhysicsError, System

# The text, the line and column of the caret, how many characters it underlines, a part of the
# message, and a part of the advice below it.
WRONG = [
    # The right-hand side is not an expression.
    ("x' =", 1, 1, 4, "the equation of x has no right-hand side", "expected x' = ..."),
    ("x' = x +", 1, 8, 1, "the expression ends after '+'", "put the expression in parentheses"),
    ("x' = * x", 1, 6, 1, "there is nothing before '*'", "expected a name, a number"),
    ("x' = x ** ", 1, 8, 2, "the expression ends after '**'", "expected a name, a number"),
    ("x' = x * / 2", 1, 10, 1, "'/' cannot follow '*'", "expected a name, a number"),
    ("x' = x*+*x", 1, 9, 1, "'*' cannot follow '+'", "expected a name, a number"),
    ("x' = sin()", 1, 10, 1, "')' cannot follow '('", "expected a name, a number"),
    ("x' = sin(*x)", 1, 10, 1, "'*' cannot follow '('", "expected a name"),
    ("x' = 2x", 1, 7, 1, "an operator is missing between '2' and 'x'", "write 2*x"),
    ("x' = 2 x", 1, 8, 1, "an operator is missing between '2' and 'x'", "write 2*x"),
    ("x' = 2(1 + x)", 1, 7, 1, "an operator is missing between '2' and '('", "write 2*(...)"),
    ("x' = sin(x)(x)", 1, 12, 1, "an operator is missing between ')' and '('", "(...)*(...)"),
    ("x' = x[0]", 1, 7, 1, "an operator is missing between 'x' and '['", "write x*[...]"),
    ("x' = sin x", 1, 10, 1, "an operator is missing between 'sin' and 'x'", "write sin(x)"),
    ("x' = 0x1f", 1, 7, 3, "an operator is missing", "write 0*x1f"),
    ("x' = 1j*x", 1, 7, 1, "an operator is missing", "write 1*j"),
    ("x' = sin(x", 1, 9, 1, "this bracket is never closed", ""),
    ("x' = (x\n  + (1\n", 2, 5, 1, "this bracket is never closed", ""),
    ("x' = x)", 1, 7, 1, "this bracket was never opened", ""),
    ("x' = (x]", 1, 8, 1, "']' closes a '('", ""),
    ("x' = x, 2", 1, 7, 1, "a comma is not allowed here", "expected an operator"),
    ("x' = [x, 2]", 1, 6, 6, "brackets [ ] hold one expression", ""),
    ("x' = " + "(" * 30 + "x" + ")" * 30, 1, 26, 1, "more than 20 brackets are open", ""),
    ("x' = 007", 1, 6, 1, "this cannot be read", "expected an expression"),
    # Characters and operators of other languages.
    ("x' = x^2", 1, 7, 1, "the character '^' is not part of the language", "x**2"),
    ("x' = x % 2", 1, 8, 1, "the character '%'", "no remainder"),
    ("x' = x // 2", 1, 8, 2, "'//' is not part of the language", "write / for a quotient"),
    ("x' = θ", 1, 6, 1, "the character 'θ'", "write theta"),
    ("x' = x − 1", 1, 8, 1, "the character '−'", "typographic minus"),
    ("x’ = x", 1, 2, 1, "the character '’'", "typographic quote"),
    ('x\' = "a"', 1, 6, 1, "the character '\"'", ""),
    ("x' = x;", 1, 7, 1, "the character ';'", "its own line"),
    ("x' = x.real", 1, 7, 1, "attribute access ('.') is not part of the language", ""),
    ("x' = x.__class__", 1, 7, 1, "attribute access", ""),
    ("x' = __import__", 1, 6, 1, "'_' is not allowed here", ""),
    ("x' = x == 1", 1, 8, 2, "'==' is not allowed inside an expression", "comparisons are not"),
    ("x' = 1, y = 2", 1, 11, 1, "'=' is not allowed inside an expression", "its own line"),
    ("x' = y, y' = x", 1, 10, 1, "a derivative is not allowed on the right", "its own line"),
    ("x' = ln(x)", 1, 6, 2, "unknown function 'ln'", "write log(x)"),
    ("x' = t*x", 1, 6, 1, "unknown name 't'", "write the equation t' = 1"),
    ("x' = ?x + ?v*x", 1, 6, 2, "the unknown ?x has the name of something known", "write ?*x"),
    ("x' = ?pi*x", 1, 6, 3, "the unknown ?pi has the name of something known", "write ?*pi"),
    ("x' = sin[x]", 1, 9, 1, "an operator is missing between 'sin' and '['", "write sin(x)"),
    ("x' = ?a?b", 1, 8, 2, "an operator is missing", "write one unknown"),
    ("x' = tan(pi/2)*x", 1, 6, 9, "tan(pi/2) is not a real number", ""),
    ("x' = ?sin(x)", 1, 6, 7, "?sin is an unknown, not a function", "write ?*sin(x)"),
    ("x >= 0\nx' = 1", 1, 1, 6, "this is not a bound", "write state x >= 0"),
    ("k >= 0\nx' = ?k", 1, 1, 6, "this is not a bound", "did you mean ?k?"),
    ("0 <= ?a, ?b <= 1\nx' = ?a*x + ?b", 1, 1, 7, "not clear which bounds", "write ?a, ?b >= 0"),
    ("?a >= 0, ?b\nx' = ?a*x + ?b", 1, 10, 2, "a bound is missing here", "?a, ?b >= 0"),
    ("?a = 3\nx' = ?a", 1, 1, 6, "not a statement of the physics", "constant a = ..."),
    ("observe x v\nx' = 1", 1, 9, 3, "'x v' is not a state", "separate names by commas"),
    ("unknown ?a >= 0\nx' = ?a", 1, 9, 7, "gives no kind of unknown", "its own line"),
    ("unknown ?a const\nx' = ?a", 1, 9, 8, "gives no kind of unknown", "did you mean constant?"),
    ("constant b = 2*a, a = 1\nx' = b", 1, 16, 1, "unknown name 'a'", "defined above"),
    ("x' = x < 1", 1, 8, 1, "'<' is not allowed inside an expression", ""),
    ("x' = x if x else 1", 1, 8, 2, "'if' is a reserved word", "conditions and loops"),
    ("x' = lambda*x", 1, 6, 6, "'lambda' is a reserved word", "write lam"),
    ("x' = _x", 1, 6, 1, "'_' is not allowed here", ""),
    # Names and functions.
    ("theta' = omga\nomega' = theta", 1, 10, 4, "unknown name 'omga'", "did you mean omega?"),
    ("x' = y", 1, 6, 1, "unknown name 'y'", "a state has an equation, y' = ..."),
    ("x' = 2*X*y\ny' = x", 1, 8, 1, "unknown name 'X'", "did you mean x?"),
    ("x' = sni(x)", 1, 6, 3, "unknown function 'sni'", "did you mean sin?"),
    ("x' = x(1 + x)", 1, 6, 1, "unknown function 'x'", "x is not a function: write x*(...)"),
    ("x' = sin", 1, 6, 3, "sin needs an argument", "sin(x)"),
    ("x' = 1 +\\\n  sin(x, x)", 1, 9, 1, "the character '\\\\'", "open a parenthesis"),
    ("x' = 2*sin(x, x)", 1, 8, 9, "sin takes one argument", "sin(x)"),
    # Unknowns where they cannot be.
    ("x' = sin(?*x)", 1, 10, 1, "the unknown ? is inside the function sin(?*x)", "?*x"),
    ("x' = x/?tau", 1, 8, 4, "the unknown ?tau is inside the divisor", "the reciprocal"),
    ("x' = ?a**2*x", 1, 6, 2, "the unknown ?a is inside the power ?a**2", "whole factor, ?*x"),
    ("x' = x**?", 1, 9, 1, "the unknown ? is inside the exponent", ""),
    ("x' = ?a*?b*x", 1, 9, 2, "the unknowns ?a and ?b are multiplied", "one unknown"),
    ("x' = ?(?*x)", 1, 8, 1, "is inside the group", "leave the inner one out"),
    ("x' = ?()", 1, 8, 1, "')' cannot follow '('", ""),
    ("x' = ?a(x)", 1, 6, 5, "?a is an unknown, not a function", "write ?a*x"),
    ("x' = ??*x", 1, 7, 1, "an operator is missing", "write one unknown"),
    ("x' = ?1*x", 1, 7, 1, "an operator is missing", "?a1"),
    ("x' = x?", 1, 7, 1, "an operator is missing between 'x' and '?'", "write x*?"),
    ("x' = ?a*x - ?a*x", 1, 6, 2, "the unknown ?a cancels out", ""),
    # Lifting.
    (
        "control u\nx' = 2*sin(x + u)",
        2,
        8,
        10,
        "its row would need the time derivative of the control u",
        "write [sin(u + x)] to keep it in the entry",
    ),
    ("control u\nx' = 1/(1 + u)", 2, 9, 5, "the time derivative of the control u", "[1/(u + 1)]"),
    ("x' = x**x", 1, 9, 1, "x is not a number", "exp(y*log(x))"),
    ("x' = (x + 1)**64", 1, 6, 11, "multiplies out to more than 500 terms", "[brackets]"),
    ("x' = (x**50)**50", 1, 6, 11, "a product of more than 200 factors", ""),
    # Functions that cannot be columns, and their arguments.
    ("x' = abs(x)", 1, 6, 6, "abs(x) cannot be a column", "write [abs(x)]"),
    ("v' = -?c*sign(v)", 1, 10, 7, "sign(v) cannot be a column", "write -?c*[sign(v)]"),
    ("control u\nx' = ?g*tanh(u)", 2, 9, 7, "tanh(u) cannot be a column", "?g*[tanh(u)]"),
    ("x' = x*max(x, 0)*2", 1, 8, 9, "max(x, 0) cannot be a column", "write x*[max(x, 0)]*2"),
    ("x' = ?*abs(x)*sign(x)", 1, 15, 7, "cannot be a column", "write ?*[abs(x)]*[sign(x)]"),
    ("x' = ?(x, abs(x))", 1, 11, 6, "abs(x) cannot be a column", "write ?*[abs(x)]"),
    ("x' = sqrt(max(x, 0))", 1, 6, 15, "sqrt(max(x, 0)) cannot be a", "[sqrt(max(x, 0))]"),
    ("x' = x/abs(x)", 1, 8, 6, "1/abs(x) cannot be a column", "write x*[1/abs(x)]"),
    ("x' = min(x)*x", 1, 6, 6, "min takes two or more arguments", "min(x, y)"),
    ("x' = abs(x, 2)*x", 1, 6, 9, "abs takes one argument", "abs(x)"),
    ("x' = clip(x, 1)*x", 1, 6, 10, "clip takes three arguments", "clip(x, lower, upper)"),
    ("x' = clip(x, 3, 1)*x", 1, 6, 13, "the range of clip is empty: 3 is above 1", ""),
    ("x' = max*x", 1, 6, 3, "max needs an argument", "max(x, y)"),
    ("x' = min(?a, 2)*x", 1, 10, 2, "?a is inside the function min(?a, 2)", "linearly"),
    ("x' = sgn(x)*x", 1, 6, 3, "unknown function 'sgn'", "write sign(x)"),
    ("control max\nx' = x", 1, 9, 3, "'max' already has a meaning", "another name"),
    # Numbers.
    ("x' = x**100", 1, 9, 3, "exponents go up to 64", ""),
    ("x' = 9**9**9", 1, 9, 4, "exponents go up to 64", ""),
    ("x' = 1e999*x", 1, 6, 5, "this number is too large", ""),
    ("x' = 1e-999*x", 1, 6, 6, "this number is too small", ""),
    ("x' = x/0", 1, 8, 1, "this divides by zero", ""),
    ("x' = x/(x - x)", 1, 9, 5, "this divides by zero", ""),
    ("x' = x*0**-1", 1, 8, 1, "this divides by zero", ""),
    ("x' = log(0)*x", 1, 6, 6, "log(0) is not a real number", ""),
    ("x' = sqrt(-1)*x", 1, 6, 8, "sqrt(-1) is not a real number", ""),
    ("x' = (-8)**(1/3)*x", 1, 6, 11, "(-8)**(1/3) is not a real number", ""),
    ("x' = exp(exp(exp(9)))*x", 1, 10, 11, "exp(exp(9)) is too large", ""),
    ("x' = 1e200*1e200*1e200*x", 1, 1, 24, "in the row of x is too large", ""),
    ("x' = 9" + "9" * 5000, 1, 6, 5001, "too many digits", ""),
    # Statements.
    ("x = -x", 1, 1, 6, "not a statement of the physics", "write x' = ... for an equation"),
    ("dx/dt = -x", 1, 1, 10, "not a statement of the physics", "write x' = ..."),
    ("x'' = -x", 1, 1, 8, "not a statement of the physics", "two states: x' = x_rate"),
    ("x' = y'\ny' = x", 1, 7, 1, "a derivative is not allowed on the right-hand side", ""),
    ("contrl u\nx' = x", 1, 1, 8, "not a statement of the physics", "did you mean control?"),
    ("x' = x\n   + 1", 2, 4, 3, "not a statement of the physics", "parentheses"),
    ("control\nx' = x", 1, 1, 7, "not a statement", "'control' must be followed by a name"),
    ("?a == 0\nx' = ?a*x", 1, 1, 7, "not a statement of the physics", ""),
    ("# nothing", None, None, None, "the physics text has no equation", "x' = -0.5*x"),
    # Declarations.
    ("x' = x\nx' = 2*x", 2, 1, 1, "the name 'x' is already taken in line 1", ""),
    ("control x\nx' = x", 2, 1, 1, "the name 'x' is already taken in line 1", ""),
    ("control u, u\nx' = x", 1, 12, 1, "the name 'u' is already taken in line 1", ""),
    ("control u v\nx' = x", 1, 9, 3, "'u v' is not a name", "letters, digits and underscores"),
    ("control u,\nx' = x", 1, 11, 1, "a name is missing here", "letters, digits"),
    ("control sin\nx' = x", 1, 9, 3, "'sin' already has a meaning", "another name"),
    ("control lambda\nx' = x", 1, 9, 6, "'lambda' is a reserved word", "write lam"),
    ("_x' = 1", 1, 1, 2, "'_x' is not a name", ""),
    ("constant pi = 3\nx' = x", 1, 10, 2, "'pi' already has a meaning", ""),
    ("constant g\nx' = x", 1, 10, 1, "'=' is missing here", "constant g = 9.81"),
    ("constant g =\nx' = x", 1, 13, 1, "there is nothing here", "an expression"),
    ("constant g = x\nx' = x", 1, 14, 1, "unknown name 'x'", "one of pi"),
    ("constant g = ?\nx' = x", 1, 14, 1, "the unknown ? is inside the number", ""),
    ("observe y\nx' = x", 1, 9, 1, "'y' is not a state", "x"),
    ("observe x, x\nx' = x", 1, 12, 1, "'x' is observed twice", ""),
    ("unit y = m\nx' = x", 1, 6, 1, "'y' is not a name of this text", ""),
    ("unit x\nx' = x", 1, 6, 1, "'=' is missing here", "rad/s"),
    ("unit x = m\nunit x = km\nx' = x", 2, 6, 1, "'x' already has a unit", ""),
    ("unit x =\nx' = x", 1, 9, 1, "this is not a unit", "m/s"),
    # Observations that are functions.
    (
        "x' = x\nobserve y = ?g*x",
        2,
        13,
        2,
        "?g of an observation is not constant",
        "unknown ?g con",
    ),
    (
        "x' = ?g*x\nobserve y = ?g*x\nunknown ?g per series",
        2,
        13,
        2,
        "the unknown ?g of an observation is not constant",
        "declare it: unknown ?g constant",
    ),
    ("x' = x\nobserve y = ?*x", 2, 13, 1, "an unknown of an observation needs a name", "?gain"),
    ("x' = x\nobserve x = 2*x", 2, 9, 1, "has the name of something known", "another name"),
    ("control u\nx' = x\nobserve u = x", 3, 9, 1, "has the name of something known", "another"),
    ("constant g = 1\nx' = x\nobserve g = x", 3, 9, 1, "the name of something known", "another"),
    ("x' = x\nobserve y = x, y = 2*x", 2, 16, 1, "'y' is observed twice", ""),
    ("x' = x\nobserve x\nobserve x", 3, 9, 1, "'x' is observed twice", ""),
    ("x' = x\nobserve y =", 2, 12, 1, "there is nothing here", "an expression"),
    ("x' = x\nobserve abs(x)", 2, 9, 6, "'abs(x)' is not a state", "observe y = abs(x)"),
    ("x' = x\nobserve sin = x", 2, 9, 3, "'sin' already has a meaning", "another name"),
    ("x' = x\nobserve y = z", 2, 13, 1, "unknown name 'z'", "one of x, pi"),
    ("x' = x\nobserve y = sin(?g*x)", 2, 17, 2, "?g is inside the function", "linearly"),
    ("x' = x\nobserve y = x/?g", 2, 15, 2, "?g is inside the divisor", "reciprocal"),
    (
        "x' = x\nobserve y = ?g*?h*x\nunknown ?g, ?h constant",
        2,
        16,
        2,
        "the unknowns ?g and ?h are multiplied",
        "one unknown",
    ),
    # First guesses and holds.
    ("x' = ?k*x\nunknown ?k constant ~ 3\n?k <= 2", 2, 23, 1, "the first guess 3 of ?k", "?k <= 2"),
    ("x' = ?k*x\nunknown ?k constant ~", 2, 22, 1, "there is nothing here", "an expression"),
    ("x' = ?k*x\nunknown ?k constant ~ x", 2, 23, 1, "unknown name 'x'", "one of pi"),
    ("x' = ?k*x\nunknown ?k constant ~ 1, 2", 2, 23, 4, "has one first guess", "on its own line"),
    ("x' = ?k*x\nunknown ?k ~ 3", 2, 9, 2, "gives no kind of unknown", "unknown ?name constant"),
    ("x' = ?k*x\n?k ~ 3", 2, 1, 6, "not a statement", "unknown ?k constant ~ 3"),
    ("x' = ~x", 1, 6, 1, "'~' is not allowed here", ""),
    ("control u hold linar\nx' = u", 1, 11, 10, "'linar' is not a way to hold", "mean linear?"),
    ("control u hold\nx' = u", 1, 11, 4, "the way to hold is missing", "hold previous"),
    ("control u hold mean, v\nx' = u", 1, 11, 12, "is not a way to hold", "for each hold"),
    # Kinds and bounds.
    ("unknown ?a constant\nx' = x", 1, 9, 2, "no equation uses ?a", ""),
    ("unknown ?rat constant\nx' = ?rate*x", 1, 9, 4, "no equation uses ?rat", "mean ?rate?"),
    ("unknown ?a often\nx' = ?a*x", 1, 9, 8, "gives no kind of unknown", "per series"),
    ("unknown a constant\nx' = ?a*x", 1, 9, 1, "'a' is not the name of an unknown", "?rate"),
    (
        "unknown ? constant\nx' = ?*x",
        1,
        9,
        1,
        "an anonymous ? cannot be declared",
        "give it a name",
    ),
    (
        "unknown ?a constant\nunknown ?a varying\nx' = ?a*x",
        2,
        9,
        2,
        "?a is declared twice",
        "",
    ),
    ("?a >= 0\nx' = ?b*x", 1, 1, 2, "no equation uses ?a", ""),
    ("? >= 0\nx' = ?*x", 1, 1, 1, "an anonymous ? cannot be declared or bounded", ""),
    ("?a >= ?b\nx' = ?a*x + ?b", 1, 1, 8, "this is not a bound", "0 <= ?a <= 1"),
    ("?a >= 1\n?a <= 0\nx' = ?a*x", 2, 1, 2, "no value of ?a fits: 1 is not below 0", ""),
    ("?a >= 0\n?a >= 1\nx' = ?a*x", 2, 1, 2, "?a has two lower bounds", ""),
    ("0 <= ?a >= 1\nx' = ?a*x", 1, 1, 12, "point in different directions", ""),
    ("?a => 0\nx' = ?a*x", 1, 1, 7, "this comparison cannot be read", "?a >= 0"),
    ("?a >= x\nx' = ?a*x", 1, 7, 1, "unknown name 'x'", "only constants"),
    ("?a in 1 > 0\nx' = ?a*x", 1, 1, 11, "this comparison cannot be read", "?a >= 0"),
    ("_a >= 0\nx' = ?a*x", 1, 1, 7, "this comparison cannot be read", ""),
    ("state y >= 0\nx' = x", 1, 7, 1, "'y' is not a state", ""),
    ("state x\nx' = x", 1, 7, 1, "this gives no bound for a state", "state x >= 0"),
    ("state x >\nx' = x", 1, 7, 3, "a bound is missing here", "state x >= 0"),
]


@pytest.mark.parametrize(("text", "line", "column", "length", "message", "advice"), WRONG)
def test_wrong_text_is_refused_in_place(tmp_path, text, line, column, length, message, advice):
    file = tmp_path / "wrong.phys"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PhysicsError) as caught:
        System.read(file)
    error = caught.value
    assert message in error.message
    assert (error.line, error.column) == (line, column)
    assert error.path == str(file)
    first, *rest = str(error).split("\n")
    assert first.startswith(str(file))
    assert advice in "\n".join(rest)
    if line is not None:
        assert error.span is not None
        assert error.span.length == length
        assert f"line {line}, column {column}" in first
        shown, carets = rest[:2]
        assert carets.index("^") - carets.index("|") == min(column, 51) + 1
        if column <= 50:  # longer lines are cut around the place
            assert shown.endswith(text.split("\n")[line - 1][:100])


def test_there_are_many_wrong_texts():
    assert len(WRONG) >= 60
    assert len({text for text, *_ in WRONG}) == len(WRONG)
