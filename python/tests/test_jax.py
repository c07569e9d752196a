"""esscher.jax, with JAX where it is there. Debian has none: there a stand-in made of PyTorch keeps the contract of what the
module uses (``custom_vjp``, ``pure_callback``, a few functions of ``jax.numpy``), so that every line of it runs and its
derivatives of first and second order are those of real chains of rules. It does not show that JAX itself accepts them."""

import importlib
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


class StandIn:
    """jax with torch tensors for arrays; ``grad`` is that of a scalar function of one array."""

    class ShapeDtypeStruct:
        def __init__(self, shape, dtype):
            self.shape, self.dtype = tuple(shape), dtype

    @staticmethod
    def pure_callback(f, like, *arguments, **option):
        """Host arrays in; one array of the promised shape and dtype out. It has no derivative of its own."""
        assert all(torch.is_tensor(x) for x in arguments)
        found = f(*[x.detach().numpy() for x in arguments])
        assert isinstance(found, np.ndarray) and found.shape == like.shape
        assert torch.as_tensor(found).dtype == like.dtype
        return torch.as_tensor(found)

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


def before_0_4_34(f, like, *arguments, vectorized=False, **kwargs):
    """The signature of older versions: other keywords are arguments of the function."""
    assert vectorized is False and not kwargs, kwargs
    return StandIn.pure_callback(f, like, *arguments)


def since_0_4_34(f, like, *arguments, vmap_method=None, **kwargs):
    """Later ones: without a method there is no vmap, and the older word is an argument of the function."""
    assert vmap_method == "sequential" and not kwargs, (vmap_method, kwargs)
    return StandIn.pure_callback(f, like, *arguments)


class CustomVjp:
    """The function by its rules: forward gives (value, residuals), backward one cotangent of each free argument."""

    def __init__(self, function, fixed):
        self.function, self.fixed = function, fixed

    def defvjp(self, forward, backward):
        self.forward, self.backward = forward, backward

    def __call__(self, *arguments):
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
                assert all(slope.shape == x.shape for slope, x in zip(found, given))
                return found

        return Rule.apply(*free)


def numpy_functions():
    found = types.ModuleType("jax.numpy")
    found.reshape, found.ravel, found.concatenate, found.trace = torch.reshape, torch.ravel, torch.cat, torch.trace
    found.sum = lambda x, axis: torch.sum(x, axis)
    found.eye = lambda n: torch.eye(n, dtype=torch.float64)
    found.zeros = lambda shape: torch.zeros(shape, dtype=torch.float64)
    return found


@pytest.fixture(params=[since_0_4_34] if real is None else [None])
def jax(monkeypatch, request):
    """(jax, esscher.jax, how arrays are made)."""
    if real is not None:
        real.config.update("jax_enable_x64", True)
        return real, importlib.import_module("esscher.jax"), real.numpy.asarray
    fake = types.ModuleType("jax")
    for name in ("ShapeDtypeStruct", "custom_vjp", "grad"):
        setattr(fake, name, getattr(StandIn, name))
    fake.pure_callback = request.param
    monkeypatch.setitem(sys.modules, "jax", fake)
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy_functions())
    monkeypatch.delitem(sys.modules, "esscher.jax", raising=False)
    module = importlib.import_module("esscher.jax")
    monkeypatch.setattr(module, "np", types.SimpleNamespace(**{**vars(np), "asarray": as_host}))
    yield fake, module, lambda x: torch.tensor(np.asarray(x, dtype=np.float64))
    sys.modules.pop("esscher.jax", None)


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


@pytest.mark.parametrize("jax", [before_0_4_34, since_0_4_34] if real is None else [None], indirect=True)
def test_attention_on_measures(jax):
    jx, ej, array = jax
    U, V = 0.5 * np.eye(2) + 0.1, RNG.normal(size=(2, 2))
    found = ej.attention(MU, array(Z), array(U), array(V))
    np.testing.assert_allclose(np.asarray(found), es.Attention(U=U, V=V)(MU, Z), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ej.attention(MU, array(Z), array(U))), MU.tilted_mean(Z @ U.T), rtol=1e-12)
    check(jx, array, lambda u: (ej.attention(MU, array(Z), u, array(V)) ** 2).sum(), U)
    check(jx, array, lambda z: (ej.attention(MU, z, array(U)) ** 2).sum(), Z)
    check(jx, array, lambda v: (ej.attention(MU, array(Z), array(U), v) ** 2).sum(), V)


def test_errors_of_finite_prompts(jax):
    jx, ej, array = jax
    U, G = np.array([[0.5, 0.1], [0.0, 0.7]]), np.array([[1.0, 0.3], [0.3, 0.8]])
    found = ej.mean_square_error(array(G), array(Z), 50, array(U))
    want = [es.mean_square_error(es.Gaussian(G), es.Attention(U=U), z, 50).value for z in Z]
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-9)
    check(jx, array, lambda u: ej.mean_square_error(array(G), array(Z), 50, u, array(np.eye(2))).sum(), U, rel=1e-5)
    check(jx, array, lambda g: ej.mean_square_error(g, array(Z), 50, array(U)).sum(), G, rel=1e-5)


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
