import sys

import numpy as np
import pytest

from covey import GP, Pool, Study
from covey.catalog import STRATEGIES
from covey.errors import MissingExtraError, NumericsError, StrategyError
from covey.large.budget import Resources


@pytest.mark.parametrize(
    ("given", "expected"),
    [(2**27, 2**27), ("128MiB", 2**27), ("1 GB", 10**9), ("1.5 gib", 3 * 2**29), (None, 2**31)],
)
def test_memory_is_read_as_people_write_it(given, expected):
    assert Resources(memory=given).bytes == expected


@pytest.mark.parametrize("bad", ["plenty", "8 apples", ".", "1.2.3 GiB", True, -5, "1 MiB", 0])
def test_memory_that_is_none_is_refused(bad):
    with pytest.raises(StrategyError, match="memory"):
        Resources(memory=bad)


def test_precision_is_one_of_two():
    with pytest.raises(StrategyError, match='"float64" or "float32"; got \'half\''):
        Resources(precision="half")


def test_on_the_host_nothing_is_moved():
    at = np.zeros((3, 2))
    assert Resources().place(at) is at


def test_an_unknown_device_is_named():
    pytest.importorskip("torch")
    with pytest.raises(NumericsError, match="cannot use device 'abacus'"):
        Resources(device="abacus")
    with pytest.raises(NumericsError, match=r"cannot use device 'abacus'.*Use device=\"cpu\""):
        Study(Pool(np.random.default_rng(0).random((5, 2))), device="abacus")


def test_a_gpu_that_is_not_there_is_refused_at_once():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(NumericsError, match="cannot use device 'cuda'"):
        Resources(device="cuda", memory="1 GiB")


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"covey\[torch\]"):
        Resources(precision="float32")


def test_float32_is_torchs():
    torch = pytest.importorskip("torch")
    placed = Resources(precision="float32").place(np.zeros((3, 2)))
    assert placed.dtype == torch.float32
    assert Resources(precision="float32").bytes > 0


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_study_asks_the_same_whichever_library_computes(strategy, members, monkeypatch):
    torch = pytest.importorskip("torch")

    def refuse(self, *args, **options):
        raise TypeError("NumPy cannot read what lies on a GPU")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    rng = np.random.default_rng(0)
    pool = Pool(rng.random((400, 3)))
    batches = []
    for device in ("cpu", "cpu:0"):  # the second is torch's
        gp = GP(samples=members) if members > 1 else GP()
        study = Study(pool, strategy=strategy, seed=1, device=device, gp=gp)
        study.add([pool.point(i) for i in range(20)], np.sin(5.0 * pool.rows[:20]).sum(axis=1))
        batches.append([trial.point for trial in study.ask(6)])
    assert batches[0] == batches[1]


def test_an_option_that_is_not_there_is_refused():
    with pytest.raises(TypeError, match="devise"):
        Study(Pool(np.zeros((1, 1))), devise="cuda")
