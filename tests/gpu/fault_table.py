"""The seeded faults that need a GPU, or the stand-in for one.

Those that need neither are tests of their own in tests/images/test_faults.py.
"""

from __future__ import annotations

from gpu.fault import Declared, Fault


def _newer_cudnn(declared: Declared) -> Declared:
    major, minor = str(declared["compiled"]["cudnn"]).split(".")[:2]
    compiled = {**declared["compiled"], "cudnn": f"{major}.{int(minor) + 9}.0"}
    return {**declared, "compiled": compiled}


FAULTS: tuple[Fault, ...] = (
    # The driver, and the GPUs that it shows
    Fault(
        name="driver too old for the image's CUDA",
        check="gpu_visible",
        cause=r"the driver serves CUDA up to 10\.2; the image has CUDA 1[1-9]",
        seeds=("old_driver",),
        run="driver facts",
    ),
    Fault(
        name="compute mode prohibited",
        check="gpu_visible",
        cause="GPU 0 is in compute mode prohibited",
        seeds=("prohibited",),
        run="driver facts",
    ),
    Fault(
        name="a GPU is lost",
        check="gpu_visible",
        cause=r"the driver has \d+ GPUs in this container, CUDA sees \d+",
        severity="warning",
        seeds=("lost_gpu",),
        run="driver facts",
    ),
    Fault(
        name="fewer GPUs than expected",
        check="gpu_visible",
        cause=r"99 GPU\(s\) are expected, \d+ are seen",
        expect_gpus=99,
        run="driver facts",
    ),
    Fault(
        name="capability of CUDA and TensorFlow differ",
        check="gpu_visible",
        cause=r"CUDA says compute capability 3\.5(, 3\.5)*, TensorFlow \d",
        seeds=("old_gpu",),
        run="capability",
        on_cpu=False,
    ),
    Fault(
        name="a product is computed on the CPU",
        check="gpu_visible",
        cause=r"a matrix product for GPU 0 was computed on '\S*CPU:0'",
        seeds=("elsewhere",),
        run="capability",
        on_cpu=False,
    ),
    Fault(
        name="MIG mode is on",
        check="gpu_visible",
        cause="MIG mode is on",
        severity="info",
        seeds=("mig",),
        run="hidden",
    ),
    Fault(
        name="TensorFlow is shown fewer GPUs than the driver",
        check="gpu_visible",
        cause=r"the driver sees \d+ GPU\(s\), TensorFlow sees 0",
        seeds=("hidden",),
        run="hidden",
    ),
    Fault(
        name="a product gives NaN",
        check="gpu_visible",
        cause=r"a matrix product of ones on GPU 0 gives nan, not 32\.0",
        seeds=("no_numbers",),
        on_cpu=False,
    ),
    Fault(
        name="every GPU is hidden by a variable",
        check="gpu_visible",
        cause=r"1 GPU\(s\) are expected, 0 are seen\nCUDA_VISIBLE_DEVICES=",
        env={"CUDA_VISIBLE_DEVICES": ""},
        expect_gpus=1,
        on_cpu=False,
    ),
    Fault(
        name="one of two GPUs is hidden",
        check="gpu_visible",
        cause=r"2 GPU\(s\) are expected, 1 are seen\nCUDA_VISIBLE_DEVICES=0",
        gpus="device=0",
        expect_gpus=2,
        least_gpus=2,
        on_cpu=False,
    ),
    Fault(
        name="kernel module and libcuda differ",
        check="gpu_visible",
        cause="the GPU driver answers CUDA error 803 and gives 0 GPUs",
        seeds=("driver_mismatch",),
    ),
    Fault(
        name="libcuda is a toolkit's stub",
        check="gpu_visible",
        cause="the GPU driver answers CUDA error 34 and gives 0 GPUs",
        seeds=("stub",),
    ),
    Fault(
        name="the fabric manager does not run",
        check="gpu_visible",
        cause="the GPU driver answers CUDA error 802 and gives 0 GPUs",
        seeds=("no_fabric_manager",),
    ),
    Fault(
        name="the driver hangs",
        check="gpu_visible",
        cause="the probe of the driver hung",
        seeds=("driver_hangs", "shorter_probe"),
        limit=8,
    ),
    Fault(
        name="a CUDA library that TensorFlow opens is gone",
        check="gpu_visible",
        cause=r"TensorFlow sees 0\n(.*\n)*.*(dlopen|load dynamic library|Skipping registering)",
        absent=("**/libcufft.so.*",),
        on_cpu=False,
    ),
    # Kernels
    Fault(
        name="an operation gives NaN",
        check="gpu_kernels",
        cause="softmax differs between GPU and CPU by inf",
        seeds=("softmax_nan",),
        run="kernels",
    ),
    Fault(
        name="an operation has no code for the GPU",
        check="gpu_kernels",
        cause="top_k fails on the GPU: InternalError: no kernel image",
        seeds=("no_kernel",),
        run="kernels",
    ),
    Fault(
        name="the wheel has no code for the GPU",
        check="gpu_kernels",
        cause=r"neither machine code nor PTX for compute capability 3\.5",
        severity="warning",
        seeds=("old_gpu",),
        run="kernels",
    ),
    Fault(
        name="the compute cache is read-only",
        check="gpu_kernels",
        cause="the cache of compiled kernels cannot be written: /proc/cache",
        severity="warning",
        env={"CUDA_CACHE_PATH": "/proc/cache"},
        run="kernels",
    ),
    Fault(
        name="the compute cache is tiny",
        check="gpu_kernels",
        cause="CUDA_CACHE_MAXSIZE is 1048576: too small",
        severity="warning",
        env={"CUDA_CACHE_MAXSIZE": "1048576"},
        run="kernels",
    ),
    Fault(
        name="an operation runs on the CPU",
        check="gpu_kernels",
        cause=r"matmul was computed on '\S*CPU:0', not on a GPU",
        seeds=("elsewhere",),
        run="kernels",
        on_cpu=False,
    ),
    # cuDNN
    Fault(
        name="a convolution is off by 1e-2",
        check="cudnn",
        cause=r"convolution and both gradients, NHWC in float32 differs from float64 on the CPU by 0\.0[12]",
        seeds=("convolution_off",),
        run="cudnn",
    ),
    Fault(
        name="a batch norm gives NaN",
        check="cudnn",
        cause="batch norm in training, NHWC in float32 differs from float64 on the CPU by inf",
        seeds=("batch_norm_nan",),
        run="cudnn",
    ),
    Fault(
        name="the loaded cuDNN is older than the tag",
        check="cudnn",
        cause=r"libcudnn\.so\.\d says \S+; the tag declares cuDNN",
        seeds=("old_cudnn",),
        run="cudnn",
        on_cpu=False,
    ),
    Fault(
        name="TensorFlow needs a newer cuDNN",
        check="cudnn",
        cause="compiled with cuDNN .* and refuses this one",
        declare=_newer_cudnn,
        run="cudnn",
        on_cpu=False,
    ),
    # Several devices
    Fault(
        name="an all-reduce hangs",
        check="multi_gpu",
        cause=r"HierarchicalCopyAllReduce (hung: it|over 2 logical devices of one GPU) had not ended",
        seeds=("sum_hangs", "shorter_parts"),
        limit=40,
        run="all-reduce",
    ),
    Fault(
        name="a sum over the GPUs is wrong",
        check="multi_gpu",
        cause=r"ReductionToOneDevice\S*( logical devices)?: of \d+ elements of a sum over the GPUs, \[",
        seeds=("sum_wrong",),
        run="all-reduce",
    ),
    Fault(
        name="64 MB of /dev/shm",
        check="multi_gpu",
        cause="/dev/shm has 64 MiB",
        severity="warning or info",  # info where there is one GPU
        shm="64m",
        run="all-reduce",
    ),
    Fault(
        name="the replicas' weights differ",
        check="multi_gpu",
        cause="after one step the replicas' weights differ",
        seeds=("replicas_differ",),
    ),
    Fault(
        name="NCCL finds no network interface",
        check="multi_gpu",
        # A row whose NCCL is known to fail does so without a fault, and then not of this.
        cause="(NcclAllReduce|the default) (hung: it had not ended|ended|was killed)(?!.*; known of this row)"
        "|no socket interface found",
        severity="error or warning",  # a warning where the row is known to fail
        env={"NCCL_SOCKET_IFNAME": "=none0"},
        seeds=("shorter_parts",),
        limit=45,
        least_gpus=2,
        on_cpu=False,
    ),
    # Precision, graphs, XLA
    Fault(
        name="the policy mixed_float16 is ignored",
        check="mixed_precision",
        cause="a layer under mixed_float16 computes in .*float32",
        seeds=("policy_ignored",),
        run="precision",
    ),
    Fault(
        name="a loss is NaN",
        check="mixed_precision",
        cause="under mixed_bfloat16 the loss of a step is nan",
        seeds=("loss_nan",),
        run="precision",
    ),
    Fault(
        name="a step with an infinite gradient is made",
        check="mixed_precision",
        cause="a step with an infinite gradient was not skipped",
        seeds=("infinite_step_made",),
        run="precision",
    ),
    Fault(
        name="XLA computes wrongly",
        check="xla",
        cause="an XLA function differs between GPU and CPU by 0",
        seeds=("xla_wrong",),
    ),
    Fault(
        name="XLA_FLAGS holds what XLA does not know",
        check="xla",
        cause=r"xla was killed by SIGABRT\n(.*\n)*.*[Uu]nknown flag",
        env={"XLA_FLAGS": "--xla_no_such_flag=1"},
    ),
    Fault(
        name="TF_XLA_FLAGS holds what TensorFlow does not know",
        check="tf_function",
        cause=r"tf_function was killed by SIGABRT\n(.*\n)*.*[Uu]nknown flag",
        env={"TF_XLA_FLAGS": "--tf_xla_no_such_flag=1"},
    ),
    Fault(
        name="a compilation hangs",
        check="xla",
        cause=r"xla had not finished after \d+ s and was killed",
        seeds=("xla_hangs", "shorter_checks"),
        limit=30,
    ),
    Fault(
        name="a graph computes otherwise than eager execution",
        check="tf_function",
        cause="a tf.function differs between GPU and CPU by 0",
        seeds=("graph_wrong",),
    ),
    Fault(
        name="a dropout does not heed the seed",
        check="determinism",
        cause=r"\d of 4 weights differ between two runs from the same seed",
        seeds=("random_dropout",),
    ),
    # Memory, profiler, files, data
    Fault(
        name="TensorFlow takes all memory",
        check="memory",
        cause="with memory growth on, .* MiB of GPU 0 went for a tensor",
        env={"TF_FORCE_GPU_ALLOW_GROWTH": "false"},
        run="memory",
        on_cpu=False,
        alone=True,
    ),
    Fault(
        name="a limit of memory is not obeyed",
        check="memory",
        cause="a limit of 1024 MiB is not obeyed",
        seeds=("no_limit",),
        run="memory",
        on_cpu=False,
        alone=True,
    ),
    Fault(
        name="CUPTI is gone",
        check="profiler",
        cause="the profiler sees no kernels of the GPU",
        absent=("**/libcupti.so.*",),
        on_cpu=False,
    ),
    Fault(
        name="the profiler records nothing",
        check="profiler",
        cause="the profiler wrote nothing",
        seeds=("no_profile",),
    ),
    Fault(
        name="a loaded model has other weights",
        check="saved_model",
        cause="a SavedModel gives other results after it was saved and loaded",
        seeds=("loaded_otherwise",),
    ),
    Fault(
        name="batches come late",
        check="input_pipeline",
        cause="the GPU waits for tf.data",
        severity="warning",
        seeds=("starved",),
        alone=True,
    ),
)

#: Checks that a fault in tests/images/test_faults.py concerns: they need no GPU.
WITHOUT_GPU = (
    "tensorflow",
    "libraries",
    "nccl",
    "second_cuda",
    "ptxas",
    "environment",
    "record",
    "pyc",
    "hygiene",
    "pip_check",
    "tensorboard",
)
