"""Models of other libraries as policies: networks of PyTorch and ONNX, models of Stable-Baselines3 and d3rlpy.

The core knows such objects and files by their marks (:mod:`mixope.policies.marks`) and asks for the adapter by its name
(:mod:`mixope.base.plugins`). Each file says at its end what it takes, as a :class:`~mixope.policies.kinds.Kind`.
"""
