/* The HDF5 reader of tensor files (captures).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_READER_HDF5_H
#define AT_READER_HDF5_H

/* Makes at_reader_open() take HDF5 files. Called once at start. Every file is opened in a child process of its
 * own, because the HDF5 library can crash or loop on damaged files; open readers from a thread that no HDF5
 * call of another thread runs beside. */
void at_reader_hdf5_register(void);

#endif
