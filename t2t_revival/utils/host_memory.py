"""The C library's memory, as it is before TensorFlow's `from_generator` changes it."""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_KEPT_BLOCK = 32 * 2**20  # bytes; the most that glibc itself goes up to, in a 64-bit process


def keep_freed_memory() -> None:
    """Lets freed blocks of up to 32 MB be used again without the kernel, as glibc does by itself.

    The first `tf.data.Dataset.from_generator` of a process turns that off under Python 3.11 and newer
    (`ApplyPython311MemoryPatch`): from then on each tensor of 128 kB or more is mapped and unmapped, and the
    kernel zeroes all its pages: twice the system time of a small training on CPUs. Does nothing with another
    C library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BLOCK)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT_BLOCK)
