/* Which instances of a kernel's templates an object has.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every one, but in mutants of large kernels (make/build_mutant.sh): there are hundreds of those, each a compilation
 * of its own, and instances for formats and head sizes that show nothing more of a fault would be most of a build. What
 * an object has not it declines; it is never asked for it. */
#ifndef AT_DEVICE_INSTANCES_H
#define AT_DEVICE_INSTANCES_H

#ifdef AT_FEW_INSTANCES
constexpr bool AT_ALL_INSTANCES = false;
#else
constexpr bool AT_ALL_INSTANCES = true;
#endif
#define AT_LEFT_OUT "left out of this object, which has few instances (AT_FEW_INSTANCES)"

#endif
