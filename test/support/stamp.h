/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - the stamped bytes of sluice-load, for the C tests
 */
#include "../../tools/load/stamp.h" /* guards itself */
