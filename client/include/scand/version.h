/*
 * The version of scand: the one place of it, which CMake reads. Part of scand.h.
 */
#ifndef SCAND_VERSION_H
#define SCAND_VERSION_H

#define SCAND_VERSION_MAJOR 0
#define SCAND_VERSION_MINOR 1
#define SCAND_VERSION_PATCH 0

/* "0.1.0": of the header that a program was built with; scand_version() tells that of the library which it runs with.
 * (SCAND_VERSION is a status.) */
#define SCAND_VERSION_TEXT SCAND_VERSION_JOIN(SCAND_VERSION_MAJOR, SCAND_VERSION_MINOR, SCAND_VERSION_PATCH)

#define SCAND_VERSION_JOIN(MAJOR, MINOR, PATCH)  SCAND_VERSION_JOIN_(MAJOR, MINOR, PATCH)
#define SCAND_VERSION_JOIN_(MAJOR, MINOR, PATCH) #MAJOR "." #MINOR "." #PATCH

#endif
