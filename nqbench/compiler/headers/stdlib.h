#pragma once

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef unsigned char u_char;
typedef long ssize_t;
typedef long long time_t;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
