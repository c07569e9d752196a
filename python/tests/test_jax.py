"""esscher.jax, with JAX where it is there. Debian has none: there a stand-in made of PyTorch keeps the contract of what the
module uses (``custom_vjp``, ``pure_callback``, a few functions of ``jax.numpy``), so that every line of it runs and its
derivatives of first and second order are those of real chains of rules. Arrays there have no values outside of callbacks,
as under ``jit``. It does not show that JAX itself accepts the rules."""

import doctest
import importlib
import inspect
import sys
import types

import numpy as np
import pytest

import esscher as es

try:
    import jax as real
except ImportError:
    real = None
torch = pytest.importorskip("torch")


class Traced(torch.Tensor):
    """An array as ``jit`` sees it: a shape and a dtype. Who asks for its values outside of a callback is refused."""

    def _refused(self, *args, **kwargs):
        raise TypeError("a traced array has no values")

    __array__ = __bool__ = __float__ = __int__ = __index__ = item = tolist = numpy = _refused


def values(x):
    """The tensor behind a traced one."""
    return x.as_subclass(torch.Tensor)


class StandIn:
    """jax with torch tensors for arrays; ``grad`` is that of a scalar function of one array."""

    Array = torch.Tensor

    class ShapeDtypeStruct:
        def __init__(self, shape, dtype):
            self.shape, self.dtype = tuple(shape), dtype

    calls = []

    @staticmethod
    def pure_callback(f, like, *arguments, **option):
        """Host arrays in; one array of the promised shape and dtype out. It has no derivative of its own."""
        assert all(torch.is_tensor(x) for x in arguments)
        StandIn.calls.append(f)
        found = f(*[values(x).detach().numpy() for x in arguments])
        assert isinstance(found, np.ndarray) and found.shape == like.shape
        assert torch.as_tensor(found).dtype == like.dtype
        return torch.as_tensor(found).as_subclass(type(arguments[0]))

    @staticmethod
    def custom_vjp(function, nondiff_argnums=()):
        assert nondiff_argnums == tuple(range(len(nondiff_argnums)))  # the module gives leading ones
        return CustomVjp(function, len(nondiff_argnums))

    @staticmethod
    def grad(f):
        def slope(x):
            x = x if x.requires_grad else x.clone().requires_grad_()
            return torch.autograd.grad(f(x), x, create_graph=True)[0]

        return slope

    @staticmethod
    def jit(f):
        """The function on traced arrays."""
        return lambda *given: values(f(*[x.as_subclass(Traced) for x in given]))


def before_0_4_34(f, like, *arguments, sharding=None, vectorized=False, **kwargs):
    """The signature of older versions: other keywords are arguments of the function."""
    assert vectorized is False and not kwargs, kwargs
    return StandIn.pure_callback(f, like, *arguments)


def in_between(f, like, *arguments, sharding=None, vectorized=None, vmap_method=None, **kwargs):
    """From 0.4.34 on both words are known, and the older one warns."""
    assert vectorized is None and vmap_method == "sequential" and not kwargs, (vectorized, vmap_method, kwargs)
    return StandIn.pure_callback(f, like, *arguments)


def of_today(f, like, *arguments, sharding=None, vmap_method=None, **kwargs):
    """Without a method there is no vmap, and the older word is an argument of the function."""
    assert vmap_method == "sequential" and not kwargs, (vmap_method, kwargs)
    return StandIn.pure_callback(f, like, *arguments)


class CustomVjp:
    """The function by its rules: forward gives (value, residuals), backward one cotangent of each free argument."""

    def __init__(self, function, fixed):
        self.function, self.fixed = function, fixed

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        """The rules, with the arguments that JAX documents: those of the function; (fixed.., residuals, cotangent)."""
        count = len(inspect.signature(self.function).parameters)
        assert len(inspect.signature(fwd).parameters) == count
        assert len(inspect.signature(bwd).parameters) == self.fixed + 2
        assert not symbolic_zeros and not optimize_remat
        self.forward, self.backward = fwd, bwd

    def __call__(self, *arguments):
        assert not any(torch.is_tensor(x) for x in arguments[: self.fixed])  # JAX refuses tracers there
        if not torch.is_grad_enabled():
            return self.function(*arguments)  # inside a rule that is not differentiated itself
        fixed, free, rules = arguments[: self.fixed], arguments[self.fixed :], self

        class Rule(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *given):
                value, kept = rules.forward(*fixed, *given)
                assert torch.equal(value, rules.function(*fixed, *given))  # without derivatives it is the function
                same = zip(kept if isinstance(kept, tuple) else (kept,), given)
                assert all(x is y for x, y in same)  # residuals are the free arguments in this module
                ctx.save_for_backward(*given)
                return value.clone()

            @staticmethod
            def backward(ctx, g):
                given = ctx.saved_tensors
                kept = given if len(given) > 1 else given[0]
                found = rules.backward(*fixed, kept, g)
                assert isinstance(found, tuple) and len(found) == len(given)
                assert all(slope.shape == x.shape and slope.dtype == x.dtype for slope, x in zip(found, given))
                return found

        return Rule.apply(*free)


def numpy_functions():
    found = types.ModuleType("jax.numpy")
    found.reshape, found.ravel, found.concatenate, found.trace = torch.reshape, torch.ravel, torch.cat, torch.trace
    found.stack = torch.stack
    found.zeros_like = torch.zeros_like
    found.asarray = lambda x: x if torch.is_tensor(x) else torch.as_tensor(np.asarray(x))
    found.sum = lambda x, axis: torch.sum(x, axis)
    found.eye = lambda n, dtype=torch.float64: torch.eye(n, dtype=dtype)
    found.zeros = lambda shape: torch.zeros(shape, dtype=torch.float64)
    found.ones = lambda shape: torch.ones(shape, dtype=torch.float64)
    return found


def other_functions():
    found = types.ModuleType("jax.nn")
    found.softmax = lambda x, axis: torch.softmax(x, axis)
    return found


@pytest.fixture(params=[of_today] if real is None else [None])
def jax(monkeypatch, request):
    """(jax, esscher.jax, how arrays are made)."""
    if real is not None:
        real.config.update("jax_enable_x64", True)
        return real, importlib.import_module("esscher.jax"), real.numpy.asarray
    fake = types.ModuleType("jax")
    for name in ("Array", "ShapeDtypeStruct", "custom_vjp", "grad", "jit"):
        setattr(fake, name, getattr(StandIn, name))
    fake.pure_callback = request.param
    fake.numpy, fake.nn = numpy_functions(), other_functions()
    monkeypatch.setitem(sys.modules, "jax", fake)
    monkeypatch.setitem(sys.modules, "jax.numpy", fake.numpy)
    monkeypatch.setitem(sys.modules, "jax.nn", fake.nn)
    monkeypatch.delitem(sys.modules, "esscher.jax", raising=False)
    module = importlib.import_module("esscher.jax")
    monkeypatch.setattr(module, "np", types.SimpleNamespace(**{**vars(np), "asarray": as_host}))
    monkeypatch.setattr(StandIn, "calls", [])
    torch.set_default_dtype(torch.float64)  # as under jax_enable_x64
    yield fake, module, lambda x: torch.tensor(np.asarray(x, dtype=np.float64))
    torch.set_default_dtype(torch.float32)
    sys.modules.pop("esscher.jax", None)
    vars(es).pop("jax", None)


def as_host(x, dtype):
    """np.asarray; a dtype of torch names the same one of NumPy."""
    return np.asarray(x, dtype=str(dtype).rpartition(".")[2] if isinstance(dtype, torch.dtype) else dtype)


RNG = np.random.default_rng(0)
Z, MU = RNG.normal(size=(3, 2)), es.Mixture([1, 2], [es.Gaussian(np.eye(2), [1.0, 0.0]), es.Rademacher(2)])


def check(jax, array, f, x, rel=1e-6):
    """grad and grad of grad of a scalar function, along a direction, against differences of values."""
    v, h = RNG.normal(size=np.shape(x)), 1e-3

    def along(g):  # of order 4
        return (8 * (g(h) - g(-h)) - (g(2 * h) - g(-2 * h))) / (12 * h)

    first = lambda y: (jax.grad(f)(array(y)) * array(v)).sum()  # noqa: E731
    value = float(first(x))
    assert value == pytest.approx(along(lambda s: float(f(array(x + s * v)))), rel=rel, abs=1e-9)
    second = float((jax.grad(lambda y: (jax.grad(f)(y) * array(v)).sum())(array(x)) * array(v)).sum())
    assert second == pytest.approx(along(lambda s: float(first(x + s * v))), rel=10 * rel, abs=1e-7)


@pytest.mark.parametrize("jax", [before_0_4_34, in_between, of_today] if real is None else [None], indirect=True)
def test_attention_on_measures(jax):
    jx, ej, array = jax
    U, V = 0.5 * np.eye(2) + 0.1, RNG.normal(size=(2, 2))
    found = ej.attention(MU, array(Z), U=array(U), V=array(V))
    np.testing.assert_allclose(np.asarray(found), es.Attention(U=U, V=V)(MU, Z), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ej.attention(MU, array(Z), U=array(U))), MU.tilted_mean(Z @ U.T), rtol=1e-12)
    check(jx, array, lambda u: (ej.attention(MU, array(Z), U=u, V=array(V)) ** 2).sum(), U)
    check(jx, array, lambda z: (ej.attention(MU, z, U=array(U)) ** 2).sum(), Z)
    check(jx, array, lambda v: (ej.attention(MU, array(Z), U=array(U), V=v) ** 2).sum(), V)


def test_errors_of_finite_prompts(jax):
    jx, ej, array = jax
    U, G = np.array([[0.5, 0.1], [0.0, 0.7]]), np.array([[1.0, 0.3], [0.3, 0.8]])
    found = ej.mean_square_error(ej.Gaussian(array(G)), array(Z), 50, U=array(U))
    want = [es.mean_square_error(es.Gaussian(G), es.Attention(U=U), z, 50).value for z in Z]
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-9)
    check(jx, array, lambda u: ej.mean_square_error(ej.Gaussian(array(G)), array(Z), 50, U=u, V=array(np.eye(2))).sum(), U, rel=1e-5)
    check(jx, array, lambda g: ej.mean_square_error(ej.Gaussian(g), array(Z), 50, U=array(U)).sum(), G, rel=1e-5)


def test_measures_of_arrays(jax):
    jx, ej, array = jax
    U, m, G, X = 0.5 * np.eye(2) + 0.1, RNG.normal(size=2), np.array([[1.0, 0.3], [0.3, 0.8]]), RNG.normal(size=(5, 2))
    head = es.Attention(U=U)
    found = ej.attention(ej.Gaussian(array(G), array(m)), array(Z), U=array(U))
    np.testing.assert_allclose(np.asarray(found), head(es.Gaussian(G, m), Z), rtol=1e-12)
    for law in (ej.Empirical(array(X)), array(X)):
        np.testing.assert_allclose(np.asarray(ej.attention(law, array(Z), U=array(U))), head(X, Z), rtol=1e-12)
    check(jx, array, lambda x: (ej.attention(x, array(Z), U=array(U)) ** 2).sum(), X)
    check(jx, array, lambda g: (ej.attention(ej.Gaussian(g), array(Z), U=array(U)) ** 2).sum(), G)
    check(jx, array, lambda x: (ej.attention(ej.Gaussian(array(G), x), array(Z), U=array(U)) ** 2).sum(), m)


def test_factors_and_temperature(jax):
    jx, ej, array = jax
    K, Q, S = RNG.normal(size=(1, 2)), RNG.normal(size=(1, 2)), np.array(0.7)
    found = ej.attention(MU, array(Z), K=array(K), Q=array(Q), score_scale=0.7)
    np.testing.assert_allclose(np.asarray(found), es.Attention(K=K, Q=Q, score_scale=0.7)(MU, Z), rtol=1e-12)
    check(jx, array, lambda k: (ej.attention(MU, array(Z), K=k, Q=array(Q)) ** 2).sum(), K)
    check(jx, array, lambda q: (ej.attention(MU, array(Z), K=array(K), Q=q) ** 2).sum(), Q)
    check(jx, array, lambda s: (ej.attention(MU, array(Z), K=array(K), Q=array(Q), score_scale=s) ** 2).sum(), S)
    with pytest.raises(TypeError, match="U, or K and Q"):
        ej.attention(MU, array(Z), K=array(K))
    with pytest.raises(TypeError, match="score_scale"):
        ej.attention(MU, array(Z), U=array(np.eye(2)), temperature=1.0)


@pytest.mark.parametrize("length", [50, es.inf])
def test_outputs_and_universal_functions(jax, length):
    jx, ej, array = jax
    U, G, m = np.array([[0.5, 0.1], [0.0, 0.7]]), np.array([[1.0, 0.3], [0.3, 0.8]]), np.array([0.3, -1.0])
    law, head = es.Gaussian(G, m), es.Attention(U=U)
    found = ej.expected_output(law, array(Z), length, U=array(U))
    np.testing.assert_allclose(np.asarray(found), [es.expected_output(law, head, z, length) for z in Z], rtol=1e-9)
    check(jx, array, lambda u: (ej.expected_output(law, array(Z), length, U=u) ** 2).sum(), U, rel=1e-5)
    error = ej.mean_square_error(law, array(Z), length, U=array(U))
    np.testing.assert_allclose(np.asarray(error), [es.mean_square_error(law, head, z, length).value for z in Z], rtol=1e-9)
    if length != es.inf:
        check(jx, array, lambda t: ej.universal(length, t)[0].sum(), np.array([0.3, 1.2]), rel=1e-5)
    with pytest.raises(es.CapabilityError, match="esscher.torch"):
        ej.mean_square_error(ej.Empirical(array(Z)), array(Z), length, U=array(U))


@pytest.mark.parametrize("law", [es.Sphere(2), es.Mixture([1, 2], [es.Gaussian(np.eye(2)), es.Dirac([1.0, 0.0])]),
                                 es.Prompt(es.Gaussian(np.eye(2)), given=[[1.0, 0.5]])], ids=lambda law: type(law).__name__)
def test_finite_prompts_of_other_laws(jax, law):
    jx, ej, array = jax
    U, head = np.array([[0.5, 0.1], [0.0, 0.7]]), es.Attention(U=[[0.5, 0.1], [0.0, 0.7]])
    error = ej.mean_square_error(law, array(Z), 20, U=array(U))
    np.testing.assert_allclose(np.asarray(error), [es.mean_square_error(law, head, z, 20).value for z in Z], rtol=1e-12)
    found = ej.expected_output(law, array(Z), 20, U=array(U))
    np.testing.assert_allclose(np.asarray(found), [es.expected_output(law, head, z, 20) for z in Z], rtol=1e-12)
    check(jx, array, lambda u: ej.mean_square_error(law, array(Z[:1]), 20, U=u).sum(), U, rel=1e-5)
    check(jx, array, lambda z: (ej.expected_output(law, z, 20, U=array(U)) ** 2).sum(), Z[:1], rel=1e-5)


def test_nothing_asks_for_values_under_jit(jax):
    jx, ej, array = jax
    U, r, f = np.eye(3) + 0.1, np.array([0.1, 0.2, 0.9]), es.risk_function(es.LinearRegressionTask(2), 20)
    cases = [
        (lambda z, u: ej.attention(MU, z, U=u), Z, np.eye(2)),
        (lambda x, z: ej.attention(x, z, U=array(np.eye(2))), RNG.normal(size=(5, 2)), Z),
        (lambda g, z: ej.mean_square_error(ej.Gaussian(g), z, 50, U=array(np.eye(2))), np.eye(2), Z),
        (lambda g, z: ej.expected_output(ej.Gaussian(g), z, 50, U=array(np.eye(2))), np.eye(2), Z),
        (lambda u, x: ej.risk(None, u, x, 20, function=f), U, r),
        (lambda u, v: ej.layer_risk(es.DenoisingTask([[1.0], [-1.0]]), es.Layer(u, v), 10), np.eye(1), np.eye(1)),
    ]
    for g, *given in cases:
        np.testing.assert_array_equal(jx.jit(g)(*map(array, given)), g(*map(array, given)))


def test_a_second_call_is_the_same_callback(jax):
    """JAX compiles what does not equal an earlier one."""
    jx, ej, array = jax
    if real is not None:
        pytest.skip("looks at the callbacks of the stand-in")
    law, f = es.Sphere(2), es.risk_function(es.LinearRegressionTask(1), 20)
    twice = [
        lambda: ej.attention(law, array(Z), U=array(np.eye(2))),
        lambda: ej.risk(None, array(np.eye(2)), array(np.ones(2)), 20, function=f),
        lambda: ej.universal(50, array(np.array([0.5]))),
    ]
    for call in twice:
        StandIn.calls.clear()
        call()
        first = set(StandIn.calls)
        call()
        assert first and set(StandIn.calls) == first
    ej.attention(es.Sphere(2), array(Z), U=array(np.eye(2)))
    assert StandIn.calls[-1] not in first


def test_whole_numbers_become_floating(jax):
    _, ej, array = jax
    whole = ej.jnp.asarray([[1, 0], [0, 1]])
    found = ej.attention(MU, whole, U=whole)
    np.testing.assert_allclose(np.asarray(found), es.Attention(U=np.eye(2))(MU, np.eye(2)), rtol=1e-6)
    assert 0.1 < float(ej.tilted_mean(es.Rademacher(1), ej.jnp.asarray([1]))[0]) < 0.9


def test_names_and_arguments_are_those_of_the_bridge_to_torch(jax):
    _, ej, _ = jax
    et = importlib.import_module("esscher.torch")
    assert set(ej.__all__) <= set(et.__all__)
    for name in ej.__all__:
        ours, theirs = (inspect.signature(getattr(module, name)) for module in (ej, et))
        assert list(ours.parameters) == list(theirs.parameters), name
        assert [p.kind for p in ours.parameters.values()] == [p.kind for p in theirs.parameters.values()], name


def test_examples(jax, monkeypatch):
    _, ej, _ = jax
    monkeypatch.setitem(sys.modules, "esscher.jax", ej)
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    tried = {test.name.rpartition(".")[2]: runner.run(test) for test in finder.find(ej, "ej") if test.examples}
    assert set(tried) == set(ej.__all__)
    assert all(result.failed == 0 for result in tried.values()), tried


def test_risks_of_heads(jax):
    jx, ej, array = jax
    task = es.LinearRegressionTask(1)
    f, U, r = es.risk_function(task, 20), RNG.normal(size=(2, 2)), RNG.normal(size=2)
    assert float(ej.risk(task, array(U), array(r), 20, function=f)) == f(es.Readout(U, r))
    assert float(ej.risk(task, array(U), array(r), 20)) == pytest.approx(f(es.Readout(U, r)))
    check(jx, array, lambda u: ej.risk(task, u, array(r), 20, function=f), U, rel=1e-5)
    check(jx, array, lambda x: ej.risk(task, array(U), x, 20, function=f), r, rel=1e-5)
    # Two heads, on prompts that are drawn once in single precision.
    two, out = np.stack([U, -U]), np.stack([r, -r])
    f = es.risk_function(task, 20, draws=64)
    slope = jx.grad(lambda u: ej.risk(task, u, array(out), 20, function=f))(array(two))
    expected = f.gradient([es.Readout(U, r), es.Readout(-U, -r)])[1]
    np.testing.assert_allclose(np.asarray(slope.detach() if real is None else slope), [head.U for head in expected])


def test_risks_of_layers(jax):
    jx, ej, array = jax
    task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    U, V, W = np.array([[1.2]]), np.array([[0.4]]), np.array([[0.1]])
    found = ej.layer_risk(task, es.Layer(array(U), array(V), array(W)), es.inf)
    assert float(found) == pytest.approx(es.risk(task, es.Layer(U, V, W), es.inf).value, rel=1e-9)
    check(jx, array, lambda u: ej.layer_risk(task, es.Layer(u, array(V)), 10), U, rel=1e-5)
    both = lambda u: es.Layer([u, array(V)], [array(V), array(U)], None, ["softmax", "linear"])  # noqa: E731
    check(jx, array, lambda u: ej.layer_risk(task, both(u), 10, draws=200), U, rel=1e-5)


def test_without_jax_only_its_module_is_missing():
    if real is not None:
        pytest.skip("JAX is there")
    sys.modules.pop("esscher.jax", None)
    with pytest.raises(ImportError, match="jax"):
        importlib.import_module("esscher.jax")
