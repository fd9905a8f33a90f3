"""Building blocks of networks.  Source: torch.nn."""

from . import functional as functional
from . import init as init
from . import utils as utils
from .activations import (
    ELU as ELU, GELU as GELU, Dropout as Dropout, Flatten as Flatten, Identity as Identity, LeakyReLU as LeakyReLU,
    LogSoftmax as LogSoftmax, ReLU as ReLU, Sigmoid as Sigmoid, SiLU as SiLU, Softmax as Softmax, Softplus as Softplus,
    Tanh as Tanh, Unflatten as Unflatten,
)
from .attention import MultiheadAttention as MultiheadAttention
from .containers import (
    ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterDict as ParameterDict, ParameterList as ParameterList,
    Sequential as Sequential,
)
from .layers import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, Embedding as Embedding, GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d, LayerNorm as LayerNorm, Linear as Linear,
)
from .losses import (
    BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CrossEntropyLoss as CrossEntropyLoss, HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss, L1Loss as L1Loss, MSELoss as MSELoss, NLLLoss as NLLLoss, SmoothL1Loss as SmoothL1Loss,
)
from .module import Module as Module
from .parameter import Buffer as Buffer, Parameter as Parameter
