# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""A kernel for quarrier.parallel; cython_kernel.py compiles and runs it."""


def smooth(unsigned char[::1] out, Py_ssize_t lead, const unsigned char[::1] values):
    """The mean of up to 11 neighbours of each index."""
    cdef Py_ssize_t index, at, begin, end
    cdef unsigned int total
    with nogil:
        for index in range(out.shape[0]):
            begin = max(0, index + lead - 5)
            end = min(values.shape[0], index + lead + 6)
            total = 0
            for at in range(begin, end):
                total += values[at]
            out[index] = <unsigned char>(total // <unsigned int>(end - begin))
