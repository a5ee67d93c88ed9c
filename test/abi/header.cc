// SPDX-License-Identifier: MIT
//
// The same as C++; the functions have the names that C gave them.
#include "header.c"
