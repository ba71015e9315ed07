"""The interface of a community for these tests, and values for its files."""

import warnings

import numpy as np

warnings.filterwarnings("ignore")


COMMUNITIES = {}


def community(cls):
    COMMUNITIES[cls.__name__] = cls()
    return cls


def rng():
    return np.random.default_rng(50)


def wave(*shape):
    """Smooth values with a little noise, around 10."""
    axes = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij")
    return 10 + sum(np.sin(2 * a) for a in axes) + 0.01 * rng().normal(size=shape)


class Community:
    name = ""
    writer, reader = "h5py", "h5py"  # Names of distributions.
    file = "in.h5"
    values = ()
    positive = ()  # Names of values that a guard keeps above 0.
    one_dataset = False  # All values are in one dataset, whose range a bound refers to.


def yt_values(path, names):
    import yt

    yt.set_log_level(50)
    data = yt.load(path)
    all_data = data.all_data()
    found = {name: np.asarray(all_data[kind, name]) for kind, name in names}
    found["time"] = np.asarray(float(data.current_time))
    found["domain"] = np.stack([np.asarray(data.domain_left_edge.v),
                                np.asarray(data.domain_right_edge.v)])
    return found
